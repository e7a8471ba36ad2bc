import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.support.descriptor.MethodSource;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;

import java.io.FileWriter;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Writes each case to -Dkavka.cases=FILE as it ends, so that a run that is cut off has said what it did.
 *
 * A line is: class, method, shown name, status, seconds, stack trace; by tabs, with \n for line ends.
 */
public class CaseLog implements TestExecutionListener {
    private static final int TRACE_CHARS_MAX = 6_000;
    private final Map<String, Long> begun = new ConcurrentHashMap<>();

    @Override
    public void executionStarted(TestIdentifier test) {
        begun.put(test.getUniqueId(), System.nanoTime());
    }

    @Override
    public void executionSkipped(TestIdentifier test, String reason) {
        if (test.isTest()) write(test, "SKIPPED", reason);
    }

    @Override
    public void executionFinished(TestIdentifier test, TestExecutionResult result) {
        String trace = result.getThrowable().map(CaseLog::traceOf).orElse("");
        if (test.isTest() || !trace.isEmpty()) write(test, result.getStatus().toString(), trace);
    }

    private static String traceOf(Throwable error) {
        StringWriter text = new StringWriter();
        error.printStackTrace(new PrintWriter(text));
        return text.toString();
    }

    private synchronized void write(TestIdentifier test, String status, String trace) {
        MethodSource source = test.getSource().filter(MethodSource.class::isInstance).map(MethodSource.class::cast)
            .orElse(null);
        double seconds = (System.nanoTime() - begun.getOrDefault(test.getUniqueId(), System.nanoTime())) / 1e9;
        String[] columns = {
            source == null ? test.getLegacyReportingName() : source.getClassName(),
            source == null ? "" : source.getMethodName(),
            test.getDisplayName(), status, String.format("%.1f", seconds),
            trace.length() > TRACE_CHARS_MAX ? trace.substring(0, TRACE_CHARS_MAX) : trace,
        };
        for (int i = 0; i < columns.length; i++) columns[i] = columns[i].replace("\t", " ").replace("\n", "\\n");
        try (FileWriter out = new FileWriter(System.getProperty("kavka.cases"), true)) {
            out.write(String.join("\t", columns) + "\n");
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }
}
