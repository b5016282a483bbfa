# One image for every process: pages and API (`web`), workers (`worker`), and all in one (`up`).
FROM python:3.12-slim

ENV PYTHONUNBUFFERED=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    STATEYARD_DATA=/data \
    STATEYARD_LOG=json
WORKDIR /app

# The dependencies before the program: they change seldom, and all of them come as wheels.
COPY pyproject.toml requirements.lock README.md LICENSE ./
RUN mkdir engine console \
    && touch engine/__init__.py console/__init__.py \
    && pip install --constraint requirements.lock '.[team]' \
    && pip uninstall --yes stateyard \
    && rm -rf engine console build ./*.egg-info

COPY manage.py ./
COPY engine engine
COPY console console
COPY templates templates
COPY static static
RUN python -m compileall -q engine console \
    && useradd --system --uid 10001 --no-create-home --home-dir /data stateyard \
    && install --directory --owner=10001 --group=stateyard --mode=0700 /data

USER 10001
VOLUME /data
EXPOSE 8083
STOPSIGNAL SIGTERM
CMD ["python", "manage.py", "up", "--host", "0.0.0.0"]
