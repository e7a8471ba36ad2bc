import java.util.List;
import java.util.Map;
import java.util.TreeMap;

import kafka.server.KafkaConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.server.config.ConfigSynonym;
import org.apache.kafka.server.config.DynamicBrokerConfig;
import org.apache.kafka.server.config.ServerTopicConfigSynonyms;
import org.apache.kafka.storage.internals.log.LogConfig;

/** Prints Apache Kafka's own config definitions, a line each: kind, name, and facts, parted by tabs. */
public class ConfigDefinitions {
    public static void main(String[] arguments) {
        print("topic", LogConfig.configDefCopy());
        print("broker", KafkaConfig.configDef());
        print("group", GroupConfig.CONFIG_DEF);
        for (Map.Entry<String, List<ConfigSynonym>> entry : ServerTopicConfigSynonyms.ALL_TOPIC_CONFIG_SYNONYMS.entrySet()) {
            System.out.println(String.join("\t", "synonym", entry.getKey(), entry.getValue().get(0).name()));
        }
        for (Map.Entry<String, String> entry : DynamicBrokerConfig.dynamicConfigUpdateModes().entrySet()) {
            System.out.println(String.join("\t", "mode", entry.getKey(), entry.getValue()));
        }
    }

    private static void print(String kind, ConfigDef definitions) {
        for (ConfigDef.ConfigKey key : new TreeMap<>(definitions.configKeys()).values()) {
            String value = key.hasDefault() ? ConfigDef.convertToString(key.defaultValue, key.type) : "<required>";
            System.out.println(String.join("\t", kind, key.name, key.type.name(), String.valueOf(value),
                key.importance.name(), String.valueOf(key.internalConfig)));
        }
    }
}
