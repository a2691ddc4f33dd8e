# SPDX-License-Identifier: BSD-3-Clause
# Rondo in a container, for the course and for machines that are not Linux: docker build -t rondo .
# and docker run -it rondo. The 64 MB of /dev/shm that a container has are enough.
FROM debian:bookworm AS build
WORKDIR /rondo
COPY . .
RUN apt-get update && ./dev deps build && rm -rf build && \
    meson setup build --buildtype=release --prefix=/opt/rondo --libdir=lib -Dtests=disabled && \
    meson install -C build

FROM debian:bookworm
# What Rondo needs to run, and what exercises do: a compiler, Python, plots, an editor.
RUN apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        libhwloc15 libsodium23 libjansson4 libopenblas0 libibverbs1 gcc libc6-dev pkg-config python3 gnuplot-nox \
        man-db less nano && \
    rm -rf /var/lib/apt/lists/* && useradd --create-home --shell /bin/bash student && \
    install -d -o student -g student /home/student/course
COPY --from=build /opt/rondo /opt/rondo
# The folder belongs to the one who works in it: exercises write files beside the scripts.
COPY --chown=student:student docs/course /home/student/course
COPY --chown=student:student examples /home/student/course/examples
ENV PATH=/opt/rondo/bin:$PATH LD_LIBRARY_PATH=/opt/rondo/lib PKG_CONFIG_PATH=/opt/rondo/lib/pkgconfig \
    MANPATH=/opt/rondo/share/man: LC_ALL=C.UTF-8
USER student
WORKDIR /home/student/course
CMD ["bash"]
