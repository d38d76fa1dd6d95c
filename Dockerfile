# syntax=docker/dockerfile:1
# docker build -t penstock .                          with the built-in engines
# docker build -t penstock --build-arg ENGINES=no .   without, which is more than half of the packages
# `make pin-images` adds the digests of these tags: then a tag that is moved changes nothing here.
ARG NODE_IMAGE=node:22-slim
ARG PYTHON_IMAGE=python:3.13-slim

FROM ${NODE_IMAGE} AS console
WORKDIR /build/console
COPY console ./
RUN npm install --no-save --silent --no-audit --no-fund --ignore-scripts && npm run --silent build

FROM ${PYTHON_IMAGE} AS build
ARG ENGINES=yes
WORKDIR /build
RUN python -m venv /opt/penstock
COPY requirements.lock ./
# Every package is the one whose hash is in the lock. Without the engines, theirs are left out of it.
RUN case "$ENGINES" in yes) left_out='^$' ;; *) left_out='^(fast-simplification|flatbuffers|hibari-tts|numpy|onnxruntime|opencv-python-headless|xllamacpp)==' ;; esac \
    && awk -v left_out="$left_out" '/^[A-Za-z0-9]/ { skip = ($0 ~ left_out) } !skip' requirements.lock > wanted.lock \
    && /opt/penstock/bin/pip install --no-cache-dir --disable-pip-version-check --require-hashes --only-binary :all: -r wanted.lock
COPY pyproject.toml README.md LICENSE NOTICE ./
COPY src ./src
COPY --from=console /build/src/penstock/console ./src/penstock/console
RUN /opt/penstock/bin/pip install --no-cache-dir --disable-pip-version-check --no-deps --no-build-isolation . \
    && /opt/penstock/bin/python -m compileall -q /opt/penstock/lib

FROM ${PYTHON_IMAGE}
ARG ENGINES=yes
LABEL org.opencontainers.image.title="penstock" \
      org.opencontainers.image.description="One key, one body shape and one bill for 3D, video and chat models." \
      org.opencontainers.image.licenses="Apache-2.0"
# hadolint ignore=DL3008
RUN if [ "$ENGINES" = yes ]; then \
      apt-get update && apt-get install --yes --no-install-recommends libgomp1 && rm -rf /var/lib/apt/lists/*; \
    fi \
    && useradd --system --uid 10001 --user-group --no-create-home --home-dir /var/lib/penstock penstock \
    && install --directory --owner=penstock --group=penstock /var/lib/penstock
COPY --from=build /opt/penstock /opt/penstock
COPY LICENSE NOTICE /usr/share/doc/penstock/
ENV PATH="/opt/penstock/bin:$PATH" \
    PENSTOCK_DATA=/var/lib/penstock \
    PENSTOCK_WEIGHTS=/var/lib/penstock/weights \
    PENSTOCK_SERVER_HOST=0.0.0.0 \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
# The root file system may be read-only: only the volume and /tmp are written to.
USER 10001:10001
VOLUME ["/var/lib/penstock"]
EXPOSE 8787 8788
STOPSIGNAL SIGTERM
# Of `serve`; a worker's is on 8788, and whoever starts one says so.
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8787/healthz', timeout=2)"]
ENTRYPOINT ["penstock"]
CMD ["serve"]
