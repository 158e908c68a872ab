# syntax=docker/dockerfile:1
# Drey in an image: docker build -t drey .      any process of a cluster: docker run drey jobmanager.sh start-foreground
#
#     compile ─► wheel ─► packages ─► the image: an interpreter, /opt/drey, a user without rights
#
# A wheel that is there already saves the minutes of the compiler: docker build --build-context wheel=dist -t drey .
# EXTRAS has those of pyproject.toml, separated by commas. tests/deployment/test_image.py follows these lines.
ARG DEBIAN=bookworm

FROM debian:${DEBIAN}-slim AS compile
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates gcc libc6-dev make python3-dev python3-venv
WORKDIR /src
COPY . .
RUN make wheel

FROM scratch AS wheel
COPY --from=compile /src/dist/*.whl /

FROM debian:${DEBIAN}-slim AS packages
ARG EXTRAS=stores
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates python3-venv
RUN python3 -m venv /opt/drey
COPY --from=wheel *.whl /tmp/
RUN wheel="$(ls /tmp/drey_engine-*.whl)" && /opt/drey/bin/pip install --no-cache-dir --no-compile "${wheel}[${EXTRAS}]"
RUN rm -rf /opt/drey/bin/pip* /opt/drey/lib/python3*/site-packages/pip /opt/drey/lib/python3*/site-packages/pip-*
RUN find /opt/drey -name tests -path '*/pyarrow/*' -prune -exec rm -rf {} + \
    && find /opt/drey -path '*/pyarrow/include' -prune -exec rm -rf {} + \
    && /opt/drey/bin/python -m compileall -q /opt/drey/lib

FROM debian:${DEBIAN}-slim
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates python3 tini \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/*
COPY --from=packages /opt/drey /opt/drey
RUN groupadd --gid 10001 drey \
    && useradd --uid 10001 --gid drey --home-dir /var/lib/drey --no-create-home --shell /usr/sbin/nologin drey \
    && install -d -o drey -g drey -m 0700 /var/lib/drey /data && install -d -m 0755 /etc/drey
COPY conf/container.yaml /etc/drey/config.yaml
ENV PATH=/opt/drey/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONDONTWRITEBYTECODE=1 \
    HOME=/var/lib/drey \
    USER=drey \
    DREY_HOME=/var/lib/drey \
    DREY_CONF_DIR=/etc/drey
WORKDIR /var/lib/drey
USER 10001:10001
EXPOSE 8081 8082 6121 6122
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=10s --start-period=60s CMD ["/opt/drey/bin/python", "-P", "-m", "engine.entrypoint.probe", "any", "alive"]
ENTRYPOINT ["/usr/bin/tini", "--"]
CMD ["jobmanager.sh", "start-foreground"]
