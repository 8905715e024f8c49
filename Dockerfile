# The server as an image: docker build -t leadline .
# docs/deployment.md tells how to run it. EXTRAS are those of pyproject.toml that the deployment needs.
ARG PYTHON=3.12

FROM python:${PYTHON}-slim AS build
ARG EXTRAS=postgres,s3,qdrant,opensearch,mcp,telemetry
RUN python -m venv /opt/leadline \
    && python -m pip install --no-cache-dir uv
WORKDIR /build
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN uv pip install --no-cache --compile-bytecode --python /opt/leadline/bin/python ".[${EXTRAS}]"

FROM python:${PYTHON}-slim
RUN groupadd --system --gid 10001 leadline \
    && useradd --system --uid 10001 --gid leadline --home-dir /data --no-create-home leadline \
    && install --directory --owner=leadline --group=leadline --mode=0700 /data
COPY --from=build /opt/leadline /opt/leadline
ENV PATH=/opt/leadline/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    LEADLINE_DATA_DIR=/data \
    LEADLINE_MODELS_DIR=/data/models \
    LEADLINE_HOST=0.0.0.0 \
    LEADLINE_PORT=8321 \
    LEADLINE_LOG_FORMAT=json
WORKDIR /data
VOLUME ["/data"]
USER 10001:10001
EXPOSE 8321
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as r; r.urlopen(f\"http://127.0.0.1:{os.environ['LEADLINE_PORT']}/health\", timeout=4)"]
# Other machines are served only where there are tokens: leadline tokens add NAME
ENTRYPOINT ["leadline"]
CMD ["serve"]
