# The images: `docker build --target broker .`, `--target operator .` and `--target audit .`, with Docker, Podman or buildah; of
# `--target audit-spark` docs/how-to/images.md says what it wants besides.
#
# What is installed is pinned by hash, comes as wheels, and is compiled to bytecode that holds no time of day, so that
# two builds on one base hold the same files. No stage of the results has a compiler or a pip of ours. They run as a
# user without a name or a right, on a root file system that may be read-only. docs/how-to/images.md says more.

ARG PYTHON=python:3.11-slim

FROM ${PYTHON} AS base
ENV PATH=/opt/kavka/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
# The standard library's bytecode: without it, and where the root is read-only, each start would compile it.
RUN python -m compileall -q -x '/(test|tests|idlelib|lib2to3|turtledemo|site-packages|dist-packages)/' \
    --invalidation-mode unchecked-hash "$(python -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')"

FROM ${PYTHON} AS wheels
# pip imports some of what it has installed, and would leave bytecode that holds the time
ENV PYTHONDONTWRITEBYTECODE=1
WORKDIR /build
COPY requirements/build.txt requirements/
RUN python -m venv --without-pip /tools \
 && python -m pip --python /tools/bin/python install -q --no-cache-dir --require-hashes -r requirements/build.txt
COPY requirements requirements
COPY broker broker
COPY operator operator
COPY cli cli
COPY audit audit
RUN /tools/bin/python -m pip wheel -q --no-index --no-deps --no-build-isolation -w /wheels \
    ./broker ./operator ./cli ./audit

FROM wheels AS broker-files
RUN python -m venv --without-pip /opt/kavka \
 && /tools/bin/python -m pip --python /opt/kavka/bin/python install -q --no-cache-dir --no-compile \
    --only-binary :all: --require-hashes -c requirements/lock.txt -r requirements/broker.in \
 && /tools/bin/python -m pip --python /opt/kavka/bin/python install -q --no-index --no-deps --no-compile \
    /wheels/kavka_broker-*.whl \
 && /opt/kavka/bin/python -m compileall -q -f --invalidation-mode unchecked-hash /opt/kavka/lib

FROM wheels AS operator-files
COPY tools/image/strip.py /tools/
RUN python -m venv --without-pip /opt/kavka \
 && /tools/bin/python -m pip --python /opt/kavka/bin/python install -q --no-cache-dir --no-compile \
    --only-binary :all: --require-hashes -c requirements/lock.txt -r requirements/operator.in \
 && /tools/bin/python -m pip --python /opt/kavka/bin/python install -q --no-index --no-deps --no-compile \
    /wheels/kavka_broker-*.whl /wheels/kavka_operator-*.whl \
    /wheels/kavka_cli-*.whl \
 && /opt/kavka/bin/python /tools/strip.py \
 && /opt/kavka/bin/python -m compileall -q -f --invalidation-mode unchecked-hash /opt/kavka/lib

FROM wheels AS audit-files
COPY tools/image/strip_audit.py /tools/
RUN python -m venv --without-pip /opt/kavka \
 && /tools/bin/python -m pip --python /opt/kavka/bin/python install -q --no-cache-dir --no-compile \
    --only-binary :all: --require-hashes -c requirements/lock.txt -r requirements/audit-image.in \
 && /tools/bin/python -m pip --python /opt/kavka/bin/python install -q --no-index --no-deps --no-compile \
    /wheels/kavka_*.whl \
 && /opt/kavka/bin/python /tools/strip_audit.py \
 && /opt/kavka/bin/python -m compileall -q -f --invalidation-mode unchecked-hash /opt/kavka/lib

FROM wheels AS audit-spark-files
COPY tools/image/strip_audit.py tools/image/strip_spark.py /tools/
# pyspark comes as a source that nothing is compiled of; what it takes to make a wheel is in /tools.
RUN python -m venv --without-pip /opt/kavka \
 && /tools/bin/python -m pip wheel -q --no-cache-dir --no-build-isolation --only-binary :all: --no-binary pyspark \
    --require-hashes -w /packages -c requirements/lock.txt -r requirements/audit-spark-image.in \
 && /tools/bin/python -m pip --python /opt/kavka/bin/python install -q --no-index --no-deps --no-compile \
    /packages/*.whl /wheels/kavka_*.whl \
 && rm -r /packages \
 && /opt/kavka/bin/python /tools/strip_audit.py \
 && /opt/kavka/bin/python /tools/strip_spark.py \
 && /opt/kavka/bin/python -m compileall -q -f --invalidation-mode unchecked-hash /opt/kavka/lib
COPY tools/image/spark_pod.py tools/image/kavka.py /opt/kavka/
# Spark's source for Kafka, which pyspark does not bring; a directory that the builder is given.
COPY --from=jars . /opt/kavka/jars

FROM base AS broker
LABEL org.opencontainers.image.title="kavka-broker" \
      org.opencontainers.image.description="Apache Kafka's broker and controller: its log, replication and quotas" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=broker-files /opt/kavka /opt/kavka
RUN install -d -o 10001 -g 10001 /var/lib/kavka
USER 10001:10001
WORKDIR /var/lib/kavka
# clients, controllers, and the page of metrics and probes
EXPOSE 9092 9093 9644
ENTRYPOINT ["kavka-broker"]
CMD ["run", "--config", "/etc/kavka/server.properties"]

FROM base AS operator
LABEL org.opencontainers.image.title="kavka-operator" \
      org.opencontainers.image.description="Kafka clusters, topics and quotas from custom resources" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=operator-files /opt/kavka /opt/kavka
USER 10001:10001
WORKDIR /tmp
ENTRYPOINT ["kavka-operator"]

FROM base AS audit
LABEL org.opencontainers.image.title="kavka-audit" \
      org.opencontainers.image.description="Answers from the audit trail of a Kafka cluster, by DuckDB" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=audit-files /opt/kavka /opt/kavka
USER 10001:10001
WORKDIR /tmp
# No entry point: the arguments of a pod are a whole command.
CMD ["kavka", "audit", "run", "--help"]

FROM base AS audit-spark
LABEL org.opencontainers.image.title="kavka-audit-spark" \
      org.opencontainers.image.description="Answers from the audit trail of a Kafka cluster, by Spark or DuckDB" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=audit-spark-files /opt/kavka /opt/kavka
# Hadoop ends where the user has no name.
RUN echo 'kavka:x:10001:10001::/tmp:/usr/sbin/nologin' >> /etc/passwd
ENV JAVA_HOME=/opt/kavka/java SPARK_DIST_CLASSPATH=/opt/kavka/jars/* PYSPARK_PYTHON=/opt/kavka/bin/python
USER 10001:10001
WORKDIR /tmp
ENTRYPOINT ["python", "/opt/kavka/spark_pod.py"]
CMD ["kavka", "audit", "run", "--help"]
