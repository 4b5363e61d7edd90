# The program with all channels, without a Harness: the configuration names one, for example of this machine.
#
#   docker build -t harness-im .
#   docker run --name harness-im --init --network host --read-only --tmpfs /tmp --cap-drop ALL \
#       --mount type=volume,source=harness-im,target=/var/lib/harness-im \
#       --mount type=bind,source=/etc/harness-im,target=/etc/harness-im,readonly harness-im
#
# Only the volume is ever written to. Secrets come as --env, or as files that uid 10001 can read: { file = "…" }.

ARG PYTHON=3.13

FROM python:${PYTHON}-slim AS build
WORKDIR /src
RUN python -m venv --without-pip /opt/harness-im
COPY requirements/service.txt requirements/
RUN --mount=type=cache,target=/var/cache/pip \
    pip --cache-dir /var/cache/pip --python /opt/harness-im/bin/python install \
        --require-hashes --requirement requirements/service.txt
COPY LICENSE README.md pyproject.toml ./
COPY archive archive
COPY bridges bridges
COPY commands commands
COPY harness_client harness_client
COPY i18n i18n
COPY tests/__init__.py tests/
COPY tests/contract tests/contract
COPY tests/fakes tests/fakes
RUN pip --python /opt/harness-im/bin/python install --no-deps --no-build-isolation . \
    && pip --python /opt/harness-im/bin/python uninstall --yes setuptools

FROM python:${PYTHON}-slim
RUN pip uninstall --yes pip \
    && groupadd --gid 10001 harness-im \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /var/lib/harness-im --shell /usr/sbin/nologin harness-im \
    && install --directory --mode 0700 --owner 10001 --group 10001 /var/lib/harness-im
COPY --from=build /opt/harness-im /opt/harness-im
ENV PATH=/opt/harness-im/bin:/usr/local/bin:/usr/bin:/bin \
    HARNESS_IM_CONFIG=/etc/harness-im/config.toml \
    XDG_DATA_HOME=/var/lib
WORKDIR /var/lib/harness-im
VOLUME /var/lib/harness-im
USER 10001:10001
HEALTHCHECK --start-period=90s --interval=30s --timeout=10s CMD ["harness-im", "health"]
ENTRYPOINT ["harness-im"]
CMD ["run"]
