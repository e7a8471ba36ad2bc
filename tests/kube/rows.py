"""One table of objects for both halves of the rules: the API server's (schema and CEL) and the models'."""

from typing import Any

from tests.kube.objects import (
    Change,
    Row,
    address,
    cluster,
    connecting,
    external,
    limited,
    listener,
    pool,
    quota,
    resource,
    ruled,
    topic,
    user,
    volumes,
)
from tests.support.control_plane import Json

GOOD, BAD = True, False
LONG = "n" * 63
NODE_PORT = {"type": "NodePort"}


PLAIN = {"mechanism": "PLAIN", "secretRef": {"name": "user"}}


def plain(**changed: object) -> Json:
    """Somebody else's Kafka without TLS, with a login by PLAIN unless it is changed."""
    return external(bootstrapServers="a:1", sasl={**PLAIN, **changed})


def ephemeral(size_limit: object = "10Gi", **fields: object) -> dict[str, Any]:
    """A cluster whose brokers keep their logs as long as their pods."""
    storage = {"type": "Ephemeral", **({} if size_limit is None else {"sizeLimit": size_limit})}
    fields = {"roles": ["broker"], "storage": storage, **fields}
    return cluster(nodePools=[pool("voters", roles=["controller"]), pool("brokers", **fields)])


def stored_on(**volume: object) -> list[dict[str, object]]:
    """One pool whose nodes have this volume."""
    return [pool(storage=volumes({"name": "data", **volume}))]


NAMES = (
    Row("topic with dots", topic("orders.eu.v1"), GOOD),
    Row("quota with dots", quota("prod.eu"), GOOD),
    Row("cluster with dots", cluster("prod.eu"), BAD),
    Row("topic in capitals", topic("Orders"), BAD),
    Row("topic of 253 letters", topic("t" * 253), BAD),
    Row("topic of 100 letters", topic("t" * 100), GOOD),
    Row("cluster and pool too long for a host", cluster("c" * 60, nodePools=[pool(LONG)]), BAD),
    Row("amounts of a pod", cluster(nodePools=[pool(resources={
        "requests": {"cpu": "0.5", "memory": "4Gi"}, "limits": {"cpu": 2, "memory": "1e9"}})]), GOOD),
    Row("a processor of a pod in words", cluster(nodePools=[pool(resources={"requests": {"cpu": "lots"}})]), BAD),
    Row("memory of a pod with a space", cluster(nodePools=[pool(resources={"limits": {"memory": "1 Gi"}})]), BAD),
    Row("pool with a dot", cluster(nodePools=[pool("a.b")]), BAD),
    Row("pool in capitals", cluster(nodePools=[pool("Nodes")]), BAD),
    Row("two pools of one name", cluster(nodePools=[pool(), pool()]), BAD),
    Row("two volumes of one name", cluster(nodePools=[pool(storage=volumes({"name": "a"}, {"name": "a"}))]), BAD),
    Row("two listeners of one name", cluster(listeners=[listener(9092), listener(9192)]), BAD),
)  # fmt: skip

AMOUNTS = (
    Row("a limit in Kubernetes' words", limited(consumerByteRate="1.5Gi"), GOOD),
    Row("a limit as a number", limited(consumerByteRate=1500), GOOD),
    Row("a limit with an exponent", limited(consumerByteRate="1e6"), GOOD),
    Row("a limit of 0", limited(producerByteRate=0), BAD),
    Row("a limit below 0", limited(producerByteRate=-5), BAD),
    Row("a limit of 0 in quotes", limited(producerByteRate="0"), BAD),
    Row("a limit below one byte", limited(producerByteRate="0.1"), BAD),
    Row("a limit of 20 digits", limited(producerByteRate="99999999999999999999"), BAD),
    Row("a limit above 2^63", limited(producerByteRate="99999999Ti"), BAD),
    Row("a limit with another unit", limited(producerByteRate="10MB"), BAD),
    Row("a limit with a space", limited(producerByteRate="10 Mi"), BAD),
    Row("a limit in thousandths", limited(producerByteRate="500m"), BAD),
    Row("a percentage above 100", limited(requestPercentage=250.5), GOOD),
    Row("a percentage of 0", limited(requestPercentage=0), BAD),
    Row("a percentage beyond reason", limited(requestPercentage=1e13), BAD),
    Row("a rate of connections", connecting(100), GOOD),
    Row("a rate of connections with a point", connecting(100.0), GOOD),
    Row("a rate of connections with a fraction", connecting(1.5), BAD),
    Row("a rate of connections of 0", connecting(0), BAD),
    Row("a rate of connections beyond 31 bits", connecting(2**31), BAD),
    Row("a volume of 100Gi", cluster(nodePools=stored_on(size="100Gi")), GOOD),
    Row("a volume of 0", cluster(nodePools=stored_on(size=0)), BAD),
    Row("a volume below 0", cluster(nodePools=stored_on(size=-1)), BAD),
    Row("a setting of ten digits", topic(config={"min.insync.replicas": 9999999999}), GOOD),
    Row("a setting that is true without quotes", topic(config={"unclean.leader.election.enable": True}), BAD),
    # Not here: a fraction without quotes, see `test_admitted.py`.
    Row("a setting that is a list", topic(config={"cleanup.policy": ["compact"]}), BAD),
    Row("a setting too long", topic(config={"cleanup.policy": "x" * 5000}), BAD),
)

ENTITIES = (
    Row("an address", address("10.1.2.3"), GOOD),
    Row("an address of version 6", address("2001:db8::1"), GOOD),
    Row("no address", address("not-an-ip"), BAD),
    Row("a network", address("10.0.0.0/8"), BAD),
    Row("a user without a letter", quota(entity={"user": {"name": ""}}), BAD),
    Row("a user that is false", quota(entity={"user": {"name": False}}), BAD),
    Row("a user named default", quota(entity={"user": {"name": "default"}}), GOOD),
    Row("a user and any client id", quota(entity={"user": {"name": "a"}, "clientId": {"default": True}}), GOOD),
    Row("nobody", quota(entity={}), BAD),
    Row("the nodes", quota(entity={"user": {"name": "CN=node,O=kavka.dev"}}), BAD),
    Row("the operator", quota(entity={"user": {"name": "CN=operator,O=kavka.dev"}, "clientId": {"name": "a"}}), BAD),
    Row("somebody who is called so too", quota(entity={"user": {"name": "CN=node,O=example.com"}}), GOOD),
)

OVERRIDE = {"from": "2026-11-21T13:00:00Z", "until": "2026-11-21T15:00:00Z", "reason": "load test"}
TIMES = (
    Row("an override", quota(overrides=[{**OVERRIDE, "limits": {"producerByteRate": "1Mi"}}]), GOOD),
    Row("an override in another zone", quota(
        overrides=[{**OVERRIDE, "until": "2026-11-21T15:00:00+01:00", "limits": {"producerByteRate": 1}}]), GOOD),
    Row("an override of a day", quota(
        overrides=[{**OVERRIDE, "until": "2026-11-22", "limits": {"producerByteRate": 1}}]), BAD),
    Row("an override that limits nothing", quota(overrides=[{**OVERRIDE, "limits": {}}]), BAD),
)  # fmt: skip

CLUSTERS = (
    Row("a cluster", cluster(), GOOD),
    Row("a cluster of nothing", cluster(nodePools=[]), BAD),
    Row("brokers and controllers apart", cluster(
        nodePools=[pool("a", roles=["controller"]), pool("b", roles=["broker"])]), GOOD),
    Row("brokers alone", cluster(nodePools=[pool(roles=["broker"])]), BAD),
    Row("controllers that are none", cluster(
        nodePools=[pool("a", roles=["controller"], replicas=0), pool("b", roles=["broker"])]), BAD),
    Row("a role twice", cluster(nodePools=[pool(roles=["broker", "broker"])]), BAD),
    Row("racks", cluster(nodePools=[pool(racks=["a", "b", "c"])]), GOOD),
    Row("a listener outside",
        cluster(listeners=[listener(9092), listener(9094, "OUTSIDE", service=NODE_PORT)]), GOOD),
    Row("an address for each", cluster(listeners=[listener(9092), listener(9094, "OUTSIDE", service={
        "type": "LoadBalancer", "annotations": {"a": "kafka-{id}"},
        "loadBalancerSourceRanges": ["192.0.2.0/24"]})]), GOOD),
    Row("a port of machines in words", cluster(listeners=[listener(9092),
        listener(9094, "OUTSIDE", service=NODE_PORT, advertised="kafka-{id}.example.com:{nodePort}")]), GOOD),
    Row("a port of no machine", cluster(listeners=[listener(9092),
        listener(9094, "OUTSIDE", advertised="kafka-{id}.example.com:{nodePort}")]), BAD),
    Row("nothing inside", cluster(listeners=[listener(9094, service=NODE_PORT)]), BAD),
    Row("controllers outside",
        cluster(listeners=[listener(9092), listener(9093, "CONTROLLER", service=NODE_PORT)]), BAD),
    Row("a service of no kind", cluster(listeners=[listener(9092), listener(9094, "OUTSIDE", service={})]), BAD),
    Row("fields of pods", cluster(nodePools=[pool(pod={"labels": {"a": "b"}, "tolerations": [{"operator": "Exists"}],
        "nodeSelector": {"disk": "fast"}, "affinity": {"nodeAffinity": {}}, "priorityClassName": "high"})]), GOOD),
    Row("more fields of pods", cluster(nodePools=[pool(pod={"terminationGracePeriodSeconds": 600,
        "securityContext": {"fsGroup": 2000}, "volumes": [{"name": "more", "emptyDir": {}}],
        "volumeMounts": [{"name": "more", "mountPath": "/more"}]})]), GOOD),
    Row("no time to stop", cluster(nodePools=[pool(pod={"terminationGracePeriodSeconds": 0})]), BAD),
    Row("a label of ours on pods", cluster(nodePools=[pool(pod={"labels": {"kavka.dev/pool": "b"}})]), BAD),
    Row("a name of ours on pods", cluster(nodePools=[pool(pod={"labels": {"app.kubernetes.io/name": "b"}})]), BAD),
    Row("an annotation of ours on pods", cluster(nodePools=[pool(pod={"annotations": {"kavka.dev/a": "b"}})]), BAD),
    Row("an unknown field of pods", cluster(nodePools=[pool(pod={"nodeSelectors": {"disk": "fast"}})]), BAD),
    Row("a toleration in words", cluster(nodePools=[pool(pod={"tolerations": ["all"]})]), BAD),
    Row("a zone", cluster(nodePools=[pool(topologyKey="topology.kubernetes.io/zone")]), GOOD),
    Row("a zone twice", cluster(nodePools=[pool(topologyKey="zone", pod={"nodeSelector": {"zone": "a"}})]), BAD),
    Row("a zone and racks", cluster(nodePools=[pool(topologyKey="zone", racks=["a"])]), BAD),
    Row("two racks in one", cluster(nodePools=[pool(racks=["a,b"])]), BAD),
    Row("brokers without volumes", ephemeral(), GOOD),
    Row("brokers without volumes and without a limit", ephemeral(None), BAD),
    Row("brokers without volumes and with a limit of 0", ephemeral(0), BAD),
    Row("a limit of volumes that last", ephemeral(storage={"sizeLimit": "1Gi"}), BAD),
    Row("controllers without volumes", ephemeral(roles=["controller"]), BAD),
    Row("brokers and controllers without volumes", ephemeral(roles=["broker", "controller"]), BAD),
    Row("a directory of brokers without volumes", ephemeral(
        storage={"type": "Ephemeral", "sizeLimit": "1Gi", **volumes({"name": "logs"})}), GOOD),
    Row("two directories of brokers without volumes", ephemeral(
        storage={"type": "Ephemeral", "sizeLimit": "1Gi", **volumes({"name": "a"}, {"name": "b"})}), BAD),
    Row("a size of brokers without volumes", ephemeral(
        storage={"type": "Ephemeral", "sizeLimit": "1Gi", **volumes({"name": "a", "size": "1Gi"})}), BAD),
    Row("a class of brokers without volumes", ephemeral(
        storage={"type": "Ephemeral", "sizeLimit": "1Gi", **volumes({"name": "a", "storageClassName": "fast"})}), BAD),
    Row("volumes of no type", ephemeral(storage={"type": "Memory", "sizeLimit": "1Gi"}), BAD),
    Row("a port of 0", cluster(listeners=[listener(0)]), BAD),
    Row("a port whose controller has none", cluster(listeners=[listener(65_000)]), BAD),
    Row("the controllers' port twice", cluster(listeners=[listener(9092), listener(10_092, "OTHER")]), BAD),
    Row("the port of the metrics", cluster(listeners=[listener(9644)]), BAD),
    Row("an image that is none", cluster(image="not an image!!"), BAD),
    Row("an image by digest", cluster(image="example.com:5000/kavka/broker@sha256:" + "0" * 64), GOOD),
    Row("a field of nobody", cluster(nodePool=[]), BAD),
    Row("a setting of the operator", cluster(config={"node.id": 5}), BAD),
    Row("a window", cluster(rollout={"windows": [
        {"days": ["Sat", "Sun"], "startTime": "03:00", "durationMinutes": 120}]}), GOOD),
    Row("a window at 24:00", cluster(rollout={"windows": [
        {"days": ["Sat"], "startTime": "24:00", "durationMinutes": 120}]}), BAD),
)  # fmt: skip

SECURED = {
    "bootstrapServers": "a.example.com:9093,b.example.com:9093",
    "tls": {"caSecret": {"name": "ca"}, "clientSecret": {"name": "me"}},
    "sasl": {"mechanism": "SCRAM-SHA-512", "secretRef": {"name": "user"}},
}
EXTERNAL = (
    Row("somebody else's Kafka", external(bootstrapServers="a:9092"), GOOD),
    Row("somebody else's Kafka with secrets", external(**SECURED), GOOD),
    Row("somebody else's Kafka, with TLS as the machine has it", external(bootstrapServers="a:9092", tls={}), GOOD),
    Row("somebody else's Kafka without a port", external(bootstrapServers="a"), BAD),
    Row("somebody else's Kafka with a space", external(bootstrapServers="a:1, b:1"), BAD),
    Row("somebody else's Kafka with Kerberos", external(
        bootstrapServers="a:1", sasl={"mechanism": "GSSAPI", "secretRef": {"name": "user"}}), BAD),
    Row("PLAIN without TLS", plain(), BAD),
    Row("PLAIN without TLS, as one word allows", plain(allowPlaintext=True), GOOD),
    Row("PLAIN without TLS, as the word does not allow", plain(allowPlaintext=False), BAD),
    Row("PLAIN over TLS", external(bootstrapServers="a:1", tls={}, sasl=PLAIN), GOOD),
    Row("SCRAM without TLS", plain(mechanism="SCRAM-SHA-512"), GOOD),
    Row("somebody else's Kafka without a user", external(bootstrapServers="a:1", sasl={"mechanism": "PLAIN"}), BAD),
    Row("somebody else's Kafka and nodes", cluster(external=SECURED), BAD),
    Row("neither nodes nor somebody else's", resource("KafkaCluster", "main", {}), BAD),
    Row("somebody else's Kafka and no pools", resource("KafkaCluster", "main", {
        "external": SECURED, "nodePools": []}), GOOD),
    Row("somebody else's Kafka with settings", resource("KafkaCluster", "main", {
        "external": SECURED, "config": {"log.retention.ms": 5}}), BAD),
    Row("somebody else's Kafka with a roll", resource("KafkaCluster", "main", {
        "external": SECURED, "rollout": {"hold": True}}), BAD),
    Row("somebody else's Kafka with a listener", resource("KafkaCluster", "main", {
        "external": SECURED, "listeners": [listener(9093)]}), BAD),
    Row("somebody else's Kafka with metrics", resource("KafkaCluster", "main", {
        "external": SECURED, "metrics": {"enabled": False}}), BAD),
    Row("somebody else's Kafka with a trail", resource("KafkaCluster", "main", {
        "external": SECURED, "audit": {}}), BAD),
)  # fmt: skip

KEEPS = {"volume": {"size": "10Gi"}}


def store(**fields: object) -> dict[str, object]:
    """A bucket for answers."""
    return {"s3": {"bucket": "audit", "credentialsSecret": {"name": "store"}, **fields}}


def asks(storage: object = KEEPS, **fields: object) -> dict[str, object]:
    """A KafkaCluster whose audit trail is asked each hour."""
    return cluster(audit={"analytics": {"schedule": "0 * * * *", "storage": storage, **fields}})


AUDITS = (
    Row("an audit trail", cluster(audit={}), GOOD),
    Row("an audit trail that is off", cluster(audit={"enabled": False}), GOOD),
    Row("an audit trail with a key of its own", cluster(
        audit={}, config={"kavka.audit.key.file": "/etc/kavka/audit.key"}), BAD),
    Row("a key of its own alone", cluster(config={"kavka.audit.key.file": "/etc/kavka/audit.key"}), GOOD),
    Row("answers from a trail", asks(), GOOD),
    Row("answers from no trail", cluster(audit={
        "enabled": False, "analytics": {"schedule": "@daily", "storage": KEEPS}}), BAD),
    Row("answers once a day", asks(schedule="@daily"), GOOD),
    Row("answers on Mondays", asks(schedule="*/5 3-6 1,15 * Mon"), GOOD),
    Row("answers by a schedule of four", asks(schedule="0 * * *"), BAD),
    Row("answers by a schedule in words", asks(schedule="every hour"), BAD),
    Row("answers without a schedule", cluster(audit={"analytics": {"storage": KEEPS}}), BAD),
    Row("answers that are kept nowhere", asks({}), BAD),
    Row("answers in a bucket", asks(store()), GOOD),
    Row("answers in a bucket of a store of one's own", asks(store(
        prefix="audit/main", endpoint="https://s3.example.com:9000", region="eu-1", addressing="Path",
        caSecret={"name": "ca"}, workSize="50Gi")), GOOD),
    Row("answers in a bucket by Spark", asks(store(), engine="Spark"), GOOD),
    Row("answers in a bucket and on a volume", asks({**store(), **KEEPS}), BAD),
    Row("answers in a bucket of nobody", asks({"s3": {"bucket": "audit"}}), BAD),
    Row("answers in a bucket with a name of none", asks(store(bucket="Audit")), BAD),
    Row("answers above a prefix", asks(store(prefix="a/../b")), BAD),
    Row("answers below a slash", asks(store(prefix="/a")), BAD),
    Row("answers at an endpoint that is no URL", asks(store(endpoint="s3.example.com:9000")), BAD),
    Row("answers at an endpoint with a password", asks(store(endpoint="https://a:b@s3.example.com")), BAD),
    Row("answers from Delta tables", asks(tableFormat="Delta"), GOOD),
    Row("answers from Delta tables by Spark", asks(engine="Spark", tableFormat="Delta"), BAD),
    Row("answers from tables of nobody", asks(tableFormat="Iceberg"), BAD),
    Row("executors of DuckDB", asks(executors={}), BAD),
    Row("executors of Spark on a volume", asks(
        engine="Spark", executors={"instances": 3, "resources": {"cpu": "1", "memory": "1Gi"}}), GOOD),
    Row("settings of Spark", asks(engine="Spark", sparkConf={"spark.sql.shuffle.partitions": "64"}), GOOD),
    Row("settings of Spark for DuckDB", asks(sparkConf={"spark.sql.shuffle.partitions": "64"}), BAD),
    Row("a setting of Spark that follows from a field", asks(engine="Spark", sparkConf={"spark.master": "x"}), BAD),
    Row("a setting of Spark's pods", asks(engine="Spark", sparkConf={"spark.kubernetes.namespace": "x"}), BAD),
    Row("a setting that is none of Spark's", asks(engine="Spark", sparkConf={"sparks": "x"}), BAD),
    Row("a setting of Spark on two lines", asks(engine="Spark", sparkConf={"spark.x": "1\nspark.y 2"}), BAD),
    Row("no executors of Spark", asks(engine="Spark", executors={"instances": 0}), BAD),
    Row("a pod too small for answers", asks(resources={"memory": "512Mi"}), BAD),
    Row("a pod as small as can be", asks(resources={"memory": "1Gi"}), GOOD),
    Row("a processor in words", asks(resources={"cpu": "one"}), BAD),
    Row("an engine of nobody", asks(engine="Flink"), BAD),
    Row("half a minute for answers", asks(timeLimitSeconds=30), BAD),
)  # fmt: skip

CLIENTS = listener(9092, "CLIENTS", protocol="SASL_SSL", sasl={})
OPENS, SHOWN = listener(9092), {"clientAuth": "required", "clientCaSecret": {"name": "staff"}}
TOKENS = {"jwksEndpointUrl": "https://issuer.example/keys", "expectedIssuer": "https://issuer.example",
          "expectedAudience": "kafka"}  # fmt: skip


def asking(**fields: Any) -> Json:
    """A cluster with one listener of these fields."""
    return cluster(listeners=[listener(9092, "CLIENTS", **fields)])


SECURITY = (
    Row("a login over TLS", cluster(listeners=[CLIENTS]), GOOD),
    Row("a login in the open", asking(protocol="SASL_PLAINTEXT", sasl={"mechanisms": ["SCRAM-SHA-256"]}), GOOD),
    Row("a protocol of nobody", asking(protocol="TLS"), BAD),
    Row("a login without saying how", asking(protocol="SASL_SSL"), BAD),
    Row("a login where none is asked for", asking(protocol="SSL", sasl={}), BAD),
    Row("passwords in the resource", asking(protocol="SASL_SSL", sasl={"mechanisms": ["PLAIN"]}), BAD),
    Row("no mechanism", asking(protocol="SASL_SSL", sasl={"mechanisms": []}), BAD),
    Row("a mechanism twice", asking(protocol="SASL_SSL", sasl={"mechanisms": ["SCRAM-SHA-512"] * 2}), BAD),
    Row("tokens", asking(protocol="SASL_SSL", sasl={"mechanisms": ["OAUTHBEARER"], "oauthbearer": TOKENS}), GOOD),
    Row("tokens of nobody", asking(protocol="SASL_SSL", sasl={"mechanisms": ["OAUTHBEARER"]}), BAD),
    Row("tokens without their mechanism", asking(protocol="SASL_SSL", sasl={"oauthbearer": TOKENS}), BAD),
    Row("tokens for nobody", asking(protocol="SASL_SSL", sasl={
        "mechanisms": ["OAUTHBEARER"], "oauthbearer": {**TOKENS, "expectedAudience": ""}}), BAD),
    Row("keys of tokens in a file", asking(protocol="SASL_SSL", sasl={
        "mechanisms": ["OAUTHBEARER"], "oauthbearer": {**TOKENS, "jwksEndpointUrl": "file:/etc/passwd"}}), BAD),
    Row("TLS", asking(protocol="SSL"), GOOD),
    Row("certificates of clients", asking(protocol="SSL", tls=SHOWN), GOOD),
    Row("certificates of clients that nobody has signed", asking(protocol="SSL", tls={"clientAuth": "required"}), BAD),
    Row("who signs for clients that show nothing", asking(protocol="SSL", tls={
        "clientCaSecret": {"name": "staff"}}), BAD),
    Row("a certificate of its own", asking(protocol="SSL", tls={"secretRef": {"name": "kafka-tls"}}), GOOD),
    Row("a certificate in the open", asking(tls={"secretRef": {"name": "kafka-tls"}}), BAD),
    Row("a protocol of the controllers", cluster(
        listeners=[CLIENTS, listener(9093, "CONTROLLER", protocol="SSL")]), BAD),
    Row("a port of nodes", cluster(listeners=[CLIENTS, listener(9091, "NODES")]), GOOD),
    Row("a port of nodes outside", cluster(listeners=[CLIENTS, listener(9091, "NODES", service=NODE_PORT)]), BAD),
    Row("a listener of another's NODES in an open cluster", cluster(
        listeners=[OPENS, listener(9191, "NODES", service=NODE_PORT)]), GOOD),
    Row("nothing but nodes", cluster(tls={}, listeners=[listener(9091, "NODES")]), BAD),
    Row("no port for nodes", cluster(listeners=[{**CLIENTS, "port": 64_000}]), BAD),
    Row("a port for nodes that is taken", cluster(listeners=[CLIENTS, listener(11_092, "MORE")]), BAD),
    Row("clients outside alone", cluster(listeners=[{**CLIENTS, "service": NODE_PORT}]), GOOD),
    Row("certificates of nodes alone", cluster(tls={}), GOOD),
    Row("days of certificates", cluster(tls={"authority": {"validityDays": 365, "renewBeforeDays": 30}}), GOOD),
    Row("a renewal before the beginning", cluster(tls={"authority": {"validityDays": 30}}), BAD),
    Row("a renewal of certificates before the beginning", cluster(tls={"certificates": {
        "validityDays": 30, "renewBeforeDays": 30}}), BAD),
    Row("rules", cluster(listeners=[CLIENTS], authorization={}), GOOD),
    Row("rules and certificates of clients", cluster(
        listeners=[listener(9092, "CLIENTS", protocol="SSL", tls=SHOWN)], authorization={}), GOOD),
    Row("rules about nobody", cluster(authorization={}), BAD),
    Row("rules about nobody over TLS", cluster(
        listeners=[listener(9092, "CLIENTS", protocol="SSL")], authorization={}), BAD),
    Row("users that may do everything", cluster(listeners=[CLIENTS], authorization={
        "superUsers": ["User:alice", "User:CN=bob,O=us"], "allowEveryoneIfNoAclFound": True}), GOOD),
    Row("two users in one", cluster(listeners=[CLIENTS], authorization={"superUsers": ["User:a;User:b"]}), BAD),
    Row("a user without a kind", cluster(listeners=[CLIENTS], authorization={"superUsers": ["alice"]}), BAD),
    Row("a trail of a secured cluster", cluster(listeners=[CLIENTS], audit={}), GOOD),
    Row("answers from the trail of a secured cluster to nobody", cluster(
        tls={}, audit={"analytics": {"schedule": "0 * * * *", "storage": KEEPS}}), BAD),
    Row("answers from the trail of a secured cluster to a user", cluster(
        tls={}, audit={"analytics": {"schedule": "0 * * * *", "storage": KEEPS, "userSecret": {"name": "a"}}}), GOOD),
    Row("somebody else's Kafka with rules", resource("KafkaCluster", "main", {
        "external": SECURED, "authorization": {}}), BAD),
    Row("somebody else's Kafka with certificates of nodes", resource("KafkaCluster", "main", {
        "external": SECURED, "tls": {}}), BAD),
)  # fmt: skip

TOPICS = (
    Row("a topic", topic(partitions=6, replicationFactor=3, config={"retention.ms": 1000}), GOOD),
    Row("a topic in Kafka's spelling", topic(topicName="Orders_EU.v1"), GOOD),
    Row("a topic named as a directory", topic(topicName=".."), BAD),
    Row("a topic with a slash", topic(topicName="a/b"), BAD),
    Row("a topic of Kafka's own", topic(topicName="__consumer_offsets"), BAD),
    Row("the audit trail", topic(topicName="__audit_events"), BAD),
    Row("no partition", topic(partitions=0), BAD),
    Row("half a partition", topic(partitions=0.5), BAD),
    Row("a quota", quota(), GOOD),
)

USERS = (
    Row("a user", user(), GOOD),
    Row("a user of all that there is", user(userName="CN=a,OU=b", authentication={
        "type": "scram-sha-256", "secretName": "s", "rotate": "now", "rotateAfterDays": 90},
        acls=[{"resource": {"type": "Group", "name": "g-", "patternType": "Prefixed"}, "operations": ["Read", "All"],
               "host": "10.0.0.0/8", "permission": "Deny"}],
        quotas={"producerByteRate": "1Mi", "requestPercentage": 250}, deletionPolicy="Retain"), GOOD),
    Row("a user that is everybody", user(userName="*"), BAD),
    Row("a user that nodes are", user(userName="CN=node,O=kavka.dev", authentication={"type": "tls"}), BAD),
    Row("a user of no letter", user(userName=""), BAD),
    Row("a user by nothing that there is", user(authentication={"type": "kerberos"}), BAD),
    Row("a user by a certificate", user(authentication={"type": "tls"}), GOOD),
    Row("a certificate with a password", user(authentication={"type": "tls", "rotate": "now"}), BAD),
    Row("a token with a Secret", user(authentication={"type": "external", "secretName": "s"}), BAD),
    Row("somebody else's password", user(authentication={"passwordFrom": {"name": "s"}}), GOOD),
    Row("somebody else's password, rotated", user(
        authentication={"passwordFrom": {"name": "s"}, "rotateAfterDays": 1}), BAD),
    Row("somebody else's password in our Secret", user(
        authentication={"passwordFrom": {"name": "s"}, "secretName": "t"}), BAD),
    Row("a password that is rotated at once", user(authentication={"rotateAfterDays": 0}), BAD),
    Row("a rule", ruled(), GOOD),
    Row("a rule for any topic", ruled(resource={"type": "Topic", "name": "*"}), GOOD),
    Row("a rule for the cluster", ruled(resource={"type": "Cluster"}, operations=["IdempotentWrite"]), GOOD),
    Row("a rule for the cluster by name", ruled(
        resource={"type": "Cluster", "name": "kafka-cluster"}, operations=["All"]), GOOD),
    Row("a rule for a cluster of another name", ruled(
        resource={"type": "Cluster", "name": "main"}, operations=["All"]), BAD),
    Row("a rule for clusters that begin so", ruled(
        resource={"type": "Cluster", "patternType": "Prefixed"}, operations=["All"]), BAD),
    Row("a rule for a topic without a name", ruled(resource={"type": "Topic"}), BAD),
    Row("a rule in other words", ruled(resource={"type": "TOPIC", "name": "t"}), BAD),
    Row("a rule for no operation", ruled(operations=[]), BAD),
    Row("a rule for an operation twice", ruled(operations=["Read", "Read"]), BAD),
    Row("a rule for an operation of groups", ruled(operations=["Read", "ClusterAction"]), BAD),
    Row("a rule for writing a group", ruled(resource={"type": "Group", "name": "g"}, operations=["Write"]), BAD),
    Row("a rule from a network", ruled(host="2001:db8::/32"), GOOD),
    Row("a rule from hosts with a space", ruled(host="a, b"), BAD),
    Row("a rule that may be", ruled(permission="Maybe"), BAD),
    Row("a user without limits", user(quotas={}), BAD),
    Row("a user with a limit of 0", user(quotas={"consumerByteRate": 0}), BAD),
    Row("a user with a limit of connections", user(quotas={"connectionCreationRate": 5}), BAD),
    Row("a user with 129 rules", user(acls=129 * [
        {"resource": {"type": "Topic", "name": "t"}, "operations": ["Read"]}]), BAD),
)  # fmt: skip

ROWS = (*NAMES, *AMOUNTS, *ENTITIES, *TIMES, *CLUSTERS, *EXTERNAL, *SECURITY, *AUDITS, *TOPICS, *USERS)

SIX = {"partitions": 6, "replicationFactor": 3}
RUNS = {"nodes": [{"id": 0, "state": "Running"}]}
CHANGES = (
    Change("more partitions", topic(partitions=6), topic(partitions=7), GOOD, SIX),
    Change("fewer partitions", topic(partitions=6), topic(partitions=5), BAD, SIX),
    Change("partitions left out", topic(partitions=6), topic(), BAD, SIX),
    Change("partitions that were never made", topic(partitions=100_000), topic(partitions=10), GOOD),
    Change("another topic", topic(topicName="a"), topic(topicName="b"), BAD),
    Change("a topic's name left out", topic(topicName="a"), topic(), BAD),
    Change("other settings", topic(config={"retention.ms": 1}), topic(config={"retention.ms": 2}), GOOD),
    Change("another entity", quota(), quota(entity={"user": {"name": "bob"}}), BAD),
    Change("other limits", quota(), limited(consumerByteRate=5), GOOD),
    Change("roles in another order", cluster(nodePools=[pool(roles=["broker", "controller"])]),
           cluster(nodePools=[pool(roles=["controller", "broker"])]), GOOD),
    Change("other roles", cluster(nodePools=[pool(), pool("more", roles=["broker"])]),
           cluster(nodePools=[pool(), pool("more", roles=["controller"])]), BAD),
    Change("pools in another order", cluster(nodePools=[pool("a"), pool("b")]),
           cluster(nodePools=[pool("b"), pool("a")]), GOOD),
    Change("a volume grown", cluster(nodePools=stored_on(size="1Gi")), cluster(nodePools=stored_on(size="2Gi")), GOOD),
    Change("a volume shrunk", cluster(nodePools=stored_on(size="2Gi")), cluster(nodePools=stored_on(size="1Gi")), BAD),
    Change("a volume's size in other words", cluster(nodePools=stored_on(size="1Gi")),
           cluster(nodePools=stored_on(size="1024Mi")), GOOD),
    Change("a volume taken out of what runs", cluster(nodePools=[pool(storage=volumes({"name": "a"}, {"name": "b"}))]),
           cluster(nodePools=[pool(storage=volumes({"name": "a"}))]), BAD, RUNS),
    Change("a volume taken out of what never ran", cluster(
        nodePools=[pool(storage=volumes({"name": "a"}, {"name": "b"}))]),
           cluster(nodePools=[pool(storage=volumes({"name": "a"}))]), GOOD),
    Change("volumes that shall end with their pods", ephemeral(storage={}), ephemeral(), BAD),
    Change("volumes that shall outlive their pods", ephemeral(), ephemeral(storage={}), BAD),
    Change("another limit of volumes", ephemeral(), ephemeral("20Gi"), BAD),
    Change("a limit of volumes in other words", ephemeral("1Gi"), ephemeral(1024**3), GOOD),
    Change("more brokers without volumes", ephemeral(), ephemeral(replicas=5), GOOD),
    Change("nodes given to somebody else", cluster(), external(bootstrapServers="a:1"), BAD),
    Change("nodes taken from somebody else", external(bootstrapServers="a:1"), cluster(), BAD),
    Change("a volume of answers grown", asks(), asks({"volume": {"size": "20Gi"}}), GOOD),
    Change("a volume of answers shrunk", asks(), asks({"volume": {"size": "5Gi"}}), BAD),
    Change("a volume of answers of another class", asks(),
           asks({"volume": {"size": "10Gi", "storageClassName": "fast"}}), BAD),
    Change("a volume of answers for many machines", asks(),
           asks({"volume": {"size": "10Gi", "accessMode": "ReadWriteMany"}}), BAD),
    Change("answers taken out", asks({"volume": {"size": "5Gi"}}), cluster(audit={}), GOOD),
    Change("a trail taken out", asks(), cluster(), GOOD),
    Change("another user", user(userName="a"), user(userName="b"), BAD),
    Change("a user's name left out", user(userName="u"), user(), BAD),
    Change("a user's other rules", ruled(), user(quotas={"producerByteRate": 1}), GOOD),
    Change("a user by another password", user(), user(authentication={"type": "scram-sha-256"}), GOOD),
    Change("a user by a certificate from now on", user(), user(authentication={"type": "tls"}), BAD),
    Change("a user of a name by a certificate from now on", user(userName="a"),
           user(userName="a", authentication={"type": "tls"}), GOOD),
    Change("a user of another cluster", user(), user(clusterRef={"name": "other"}), BAD),
    Change("an open cluster that shall ask for logins", cluster(), cluster(listeners=[CLIENTS]), BAD),
    Change("a secured cluster that shall be open", cluster(listeners=[CLIENTS]), cluster(), BAD),
    Change("another protocol of a secured cluster", cluster(listeners=[CLIENTS]), asking(protocol="SSL"), GOOD),
    Change("rules for a secured cluster", cluster(listeners=[CLIENTS]), cluster(
        listeners=[CLIENTS], authorization={}), GOOD),
    Change("somebody else's at other addresses", external(bootstrapServers="a:1"), external(**SECURED), GOOD),
)  # fmt: skip
