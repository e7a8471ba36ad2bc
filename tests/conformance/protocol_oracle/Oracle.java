import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

/**
 * What Apache Kafka's generated classes make of a message. Each line of the input is
 * "class TAB version TAB hex bytes TAB json, or -"; the line of the answer is
 * "bytes made from the json, or - TAB bytes read and written again TAB json made from the bytes".
 */
public class Oracle {
    static final ObjectMapper JSON = new ObjectMapper();
    static final HexFormat HEX = HexFormat.of();

    public static void main(String[] arguments) throws Exception {
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        var out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line; (line = in.readLine()) != null; ) {
            try {
                out.println(answer(line.split("\t", 4)));
            } catch (ReflectiveOperationException | RuntimeException problem) {
                Throwable cause = problem.getCause() == null ? problem : problem.getCause();
                out.println("error " + cause.toString().replace('\n', ' '));
            }
        }
        out.flush();
    }

    static String answer(String[] words) throws Exception {
        short version = Short.parseShort(words[1]);
        var kind = Class.forName(words[0]);
        var converter = Class.forName(words[0] + "JsonConverter");
        Method write = converter.getMethod("write", kind, short.class);
        Message read = (Message) kind.getDeclaredConstructor().newInstance();
        ByteBuffer buffer = ByteBuffer.wrap(HEX.parseHex(words[2]));
        read.read(new ByteBufferAccessor(buffer), version);
        if (buffer.hasRemaining()) {
            throw new IllegalStateException(buffer.remaining() + " bytes are left over");
        }
        String made = "-";
        if (!words[3].equals("-")) {
            Method parse = converter.getMethod("read", JsonNode.class, short.class);
            made = bytes((Message) parse.invoke(null, JSON.readTree(words[3]), version), version);
        }
        return made + "\t" + bytes(read, version) + "\t" + write.invoke(null, read, version);
    }

    static String bytes(Message message, short version) {
        ByteBuffer buffer = MessageUtil.toByteBufferAccessor(message, version).buffer();
        byte[] found = new byte[buffer.remaining()];
        buffer.get(found);
        return HEX.formatHex(found);
    }
}
