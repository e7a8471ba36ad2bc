import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs the main methods of Apache Kafka's tools, one after another, in one JVM.
 *
 * <p>Reads calls from stdin: the number of words, the words (the class first) and what the tool reads; writes to stdout
 * the exit status and what the tool wrote to stdout and stderr. Each text is its length in bytes and UTF-8. Ends with
 * its stdin.
 */
public final class ToolRunner {
    /** Writes to the stream of the present call: Scala's Console and Log4j keep the stream that they found first. */
    private static final class Switched extends OutputStream {
        volatile ByteArrayOutputStream now = new ByteArrayOutputStream();

        @Override
        public void write(int value) {
            now.write(value);
        }

        @Override
        public void write(byte[] bytes, int offset, int count) {
            now.write(bytes, offset, count);
        }
    }

    /** Reads what the present call is given. */
    private static final class SwitchedInput extends InputStream {
        volatile ByteArrayInputStream now = new ByteArrayInputStream(new byte[0]);

        @Override
        public int read() {
            return now.read();
        }

        @Override
        public int read(byte[] bytes, int offset, int count) {
            return now.read(bytes, offset, count);
        }

        @Override
        public int available() {
            return now.available();
        }
    }

    private static final Switched OUT = new Switched();
    private static final Switched ERR = new Switched();
    private static final SwitchedInput IN = new SwitchedInput();
    private static final AtomicReference<Call> CALL = new AtomicReference<>();
    private static final List<Runnable> HOOKS = new CopyOnWriteArrayList<>();

    public static void main(String[] none) throws IOException, InterruptedException {
        DataInputStream calls = new DataInputStream(new FileInputStream(FileDescriptor.in));
        DataOutputStream answers = new DataOutputStream(new FileOutputStream(FileDescriptor.out));
        System.setIn(IN);
        System.setOut(new PrintStream(OUT, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(ERR, true, StandardCharsets.UTF_8));
        Exit.setExitProcedure((status, message) -> exit(status));
        Exit.setHaltProcedure((status, message) -> exit(status));
        Exit.setShutdownHookAdder((name, hook) -> HOOKS.add(hook));
        while (true) {
            String[] words;
            try {
                words = new String[calls.readInt()];
            } catch (EOFException end) {
                Runtime.getRuntime().halt(0);
                return;
            }
            for (int index = 0; index < words.length; index++) {
                words[index] = new String(read(calls), StandardCharsets.UTF_8);
            }
            IN.now = new ByteArrayInputStream(read(calls));
            OUT.now = new ByteArrayOutputStream();
            ERR.now = new ByteArrayOutputStream();
            int status = call(words);
            ByteArrayOutputStream reply = new ByteArrayOutputStream();
            DataOutputStream written = new DataOutputStream(reply);
            written.writeInt(status);
            write(written, OUT.now.toByteArray());
            write(written, ERR.now.toByteArray());
            answers.write(reply.toByteArray());
            answers.flush();
        }
    }

    /** A call of a tool, or of what it does at its end: over with its thread, or where it asks for the end. */
    private static final class Call {
        private final CountDownLatch over = new CountDownLatch(1);
        private volatile int status;

        void end(int status) {
            this.status = status;
            over.countDown();
        }

        /** The exit status. */
        int play(Runnable work) throws InterruptedException {
            CALL.set(this);
            Thread thread = new Thread(() -> {
                work.run();
                over.countDown();
            }, "main");
            thread.setDaemon(true);
            thread.start();
            over.await();
            return status;
        }
    }

    /** Keep the thread for ever: behind the end of a process nothing of it runs, not even what catches an Error. */
    private static void exit(int status) {
        CALL.get().end(status);
        while (true) {
            LockSupport.park();
        }
    }

    /** The exit status of a tool: what it asked for, 1 after an exception, 0 otherwise. */
    private static int call(String[] words) throws InterruptedException {
        HOOKS.clear();
        int status = new Call().play(() -> run(words));
        for (Runnable hook : HOOKS) {
            new Call().play(hook);
        }
        System.out.flush();
        System.err.flush();
        return status;
    }

    private static void run(String[] words) {
        String[] arguments = Arrays.copyOfRange(words, 1, words.length);
        try {
            Class.forName(words[0]).getMethod("main", String[].class).invoke(null, (Object) arguments);
        } catch (InvocationTargetException thrown) {
            thrown.getCause().printStackTrace();
            CALL.get().end(1);
        } catch (ReflectiveOperationException error) {
            error.printStackTrace();
            CALL.get().end(1);
        }
    }

    private static byte[] read(DataInputStream calls) throws IOException {
        byte[] bytes = new byte[calls.readInt()];
        calls.readFully(bytes);
        return bytes;
    }

    private static void write(DataOutputStream answers, byte[] bytes) throws IOException {
        answers.writeInt(bytes.length);
        answers.write(bytes);
    }
}
