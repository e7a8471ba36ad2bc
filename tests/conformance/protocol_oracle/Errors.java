/** Apache Kafka's error codes: "NAME code" a line. */
public class Errors {
    public static void main(String[] arguments) {
        for (var error : org.apache.kafka.common.protocol.Errors.values()) {
            System.out.println(error.name() + " " + error.code());
        }
    }
}
