import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Properties;

import kafka.server.KafkaConfig;

/** Reads lines of `key=value` settings, parted by tabs, and prints for each whether Apache Kafka takes such a file. */
public class BrokerFiles {
    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            Properties properties = new Properties();
            for (String setting : line.split("\t")) {
                int at = setting.indexOf('=');
                properties.setProperty(setting.substring(0, at), setting.substring(at + 1));
            }
            System.out.println(isTaken(properties) ? "taken" : "refused");
        }
    }

    private static boolean isTaken(Properties properties) {
        try {
            new KafkaConfig(properties, false);
            return true;
        } catch (RuntimeException | ExceptionInInitializerError problem) {
            return false;
        }
    }
}
