# One image for every process: pages and API (`web`), workers (`worker`), and all in one (`up`).
# PYTHON may name a digest: docker build --build-arg PYTHON=python@sha256:...
ARG PYTHON=python:3.12-slim
FROM ${PYTHON}

ENV PYTHONUNBUFFERED=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    STATEYARD_DATA=/data \
    STATEYARD_LOG=json
WORKDIR /app

# The dependencies before the program: they change seldom, and all of them come as wheels.
# PARQUET=1 adds PyArrow, with which a Distributed Map reads Parquet files.
ARG PARQUET=0
COPY requirements-team.lock requirements-parquet.lock ./
RUN pip install --require-hashes --no-deps --requirement requirements-team.lock \
    && if [ "$PARQUET" = 1 ]; then \
         pip install --require-hashes --no-deps --requirement requirements-parquet.lock; \
       fi

COPY LICENSE manage.py pyproject.toml ./
COPY engine engine
COPY console console
COPY templates templates
COPY static static
# What `stateyard version` says beside the release: --build-arg REVISION=$(git rev-parse --short HEAD)
ARG REVISION=
RUN echo "$REVISION" > revision && python -m compileall -q engine console \
    && useradd --system --uid 10001 --no-create-home --home-dir /data stateyard \
    && install --directory --owner=10001 --group=stateyard --mode=0700 /data

USER 10001
VOLUME /data
EXPOSE 8083
STOPSIGNAL SIGTERM
CMD ["python", "manage.py", "up", "--host", "0.0.0.0"]
