# The engine, ready for both databases. It listens to the world outside its container, so it wants a key:
#   docker build -t tidings .
#   docker run -p 127.0.0.1:8020:8020 -e TIDINGS_API_KEYS="$(openssl rand -hex 32)" tidings

FROM python:3.13.13-slim-trixie AS build
ENV UV_PYTHON_DOWNLOADS=never UV_COMPILE_BYTECODE=1 UV_LINK_MODE=copy UV_PROJECT_ENVIRONMENT=/opt/tidings
RUN pip install --no-cache-dir uv==0.13.8
WORKDIR /build
# Dependencies first: they change less often than the code.
COPY pyproject.toml uv.lock ./
RUN uv sync --frozen --no-default-groups --extra postgres --extra rabbitmq --extra otel --no-install-project
COPY LICENSE NOTICE *.md ./
COPY docs docs
COPY deploy deploy
COPY examples examples
COPY src src
RUN uv sync --frozen --no-default-groups --extra postgres --extra rabbitmq --extra otel --no-editable

FROM python:3.13.13-slim-trixie
RUN useradd --system --uid 10001 --home-dir /var/lib/tidings --create-home tidings \
    && install -d -m 0700 -o tidings -g tidings /var/lib/tidings/data
COPY --from=build /opt/tidings /opt/tidings
ENV PATH=/opt/tidings/bin:$PATH PYTHONUNBUFFERED=1 TIDINGS_HOST=0.0.0.0
USER tidings
# SQLite lives in ./data below, as on a laptop; TIDINGS_DATABASE names a PostgreSQL instead.
WORKDIR /var/lib/tidings
VOLUME /var/lib/tidings/data
EXPOSE 8020
# Whether the process answers; whether work gets done is /health, for people and alerts.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=6 \
    CMD ["python", "-c", "import os, urllib.request as u; u.urlopen('http://127.0.0.1:' + (os.environ.get('TIDINGS_METRICS_PORT') or os.environ.get('TIDINGS_PORT', '8020')) + '/health/live', timeout=4)"]
# The engine finishes what is in flight before it goes.
STOPSIGNAL SIGTERM
ENTRYPOINT ["tidings"]
CMD ["serve"]
