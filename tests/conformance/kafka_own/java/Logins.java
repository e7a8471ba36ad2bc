package org.apache.kafka.common.test;

import org.apache.kafka.common.network.ListenerName;

import java.io.File;
import java.io.IOException;
import java.util.*;

/** The logins of secured clusters: PLAIN, with the users and passwords of Apache Kafka's test runtime. */
final class Logins {
    private static final String MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required";
    static final String OF_THE_ADMINISTRATOR = String.format("%s username=\"%s\" password=\"%s\";",
        MODULE, JaasUtils.KAFKA_PLAIN_ADMIN, JaasUtils.KAFKA_PLAIN_ADMIN_PASSWORD);
    private static final String OF_A_NODE = String.format(
        "%1$s username=\"%2$s\" password=\"%3$s\" user_%2$s=\"%3$s\" user_%4$s=\"%5$s\";", MODULE,
        JaasUtils.KAFKA_PLAIN_ADMIN, JaasUtils.KAFKA_PLAIN_ADMIN_PASSWORD,
        JaasUtils.KAFKA_PLAIN_USER1, JaasUtils.KAFKA_PLAIN_USER1_PASSWORD);

    private Logins() {
    }

    /** Add to a node's settings what the test has not set itself. */
    static void addTo(Map<String, String> properties, ListenerName... listeners) {
        properties.putIfAbsent("sasl.enabled.mechanisms", "PLAIN");
        properties.putIfAbsent("sasl.mechanism.inter.broker.protocol", "PLAIN");
        properties.putIfAbsent("sasl.mechanism.controller.protocol", "PLAIN");
        properties.putIfAbsent("authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer");
        properties.putIfAbsent("allow.everyone.if.no.acl.found", "false");
        properties.putIfAbsent("super.users", "User:" + JaasUtils.KAFKA_PLAIN_ADMIN);
        for (ListenerName name : listeners)
            properties.putIfAbsent(name.configPrefix() + "plain.sasl.jaas.config", OF_A_NODE);
    }

    /** The JAAS file from which tests read the logins of their clients. */
    static File clientFile() throws IOException {
        JaasModule module = JaasModule.plainLoginModule(
            JaasUtils.KAFKA_PLAIN_ADMIN, JaasUtils.KAFKA_PLAIN_ADMIN_PASSWORD, true,
            Map.of(JaasUtils.KAFKA_PLAIN_USER1, JaasUtils.KAFKA_PLAIN_USER1_PASSWORD,
                JaasUtils.KAFKA_PLAIN_ADMIN, JaasUtils.KAFKA_PLAIN_ADMIN_PASSWORD));
        File file = JaasUtils.writeJaasContextsToFile(
            Set.of(new JaasUtils.JaasSection(JaasUtils.KAFKA_SERVER_CONTEXT_NAME, List.of(module))));
        JaasUtils.refreshJavaLoginConfigParam(file);
        return file;
    }
}
