# The service alone: `node dist/main.js` and the commands in `dist/cli`. It requires ELASTICSEARCH_URL.

FROM node:24-trixie-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# No dependency needs an install script.
RUN npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
COPY tsconfig.json ./
COPY src src
COPY scripts/build.sh scripts/
RUN npm exec --call scripts/build.sh \
 && npm prune --omit=dev --ignore-scripts --no-audit --no-fund --loglevel=error
COPY LICENSE ./
COPY data data
COPY deploy deploy
COPY mappings mappings
# With a umask such as 077, only the owner can read the files of a clone.
RUN chmod -R a+rX .

FROM node:24-trixie-slim
ENV NODE_ENV=production HOST=0.0.0.0 PORT=3000
WORKDIR /app
COPY --from=build /app/LICENSE /app/package.json ./
COPY --from=build /app/data data
COPY --from=build /app/deploy deploy
COPY --from=build /app/mappings mappings
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/dist dist
# A number, because Kubernetes cannot check that a named user is not root.
USER 1000:1000
EXPOSE 3000
# Healthy means that the process responds. `/health` is not suitable: a first load of millions of names takes
# minutes, and a restart does not help if Elasticsearch is down.
HEALTHCHECK --interval=5s --timeout=3s --start-period=10s --retries=3 \
  CMD ["timeout", "2", "bash", "deploy/health-check.sh"]
# No shell and no npm in front of the process, so that it receives SIGTERM. Node 24 lets the young generation
# grow with the memory of the machine; 16 MB, the limit of Node 20, saves about 90 MB, and searches are not
# measurably slower.
CMD ["node", "--max-semi-space-size=16", "dist/main.js"]
# Only the release knows and passes these values. They come last, because they change with every commit.
ARG VERSION
ARG REVISION
ARG CREATED
ARG SOURCE
LABEL org.opencontainers.image.title="package-registry-search" \
      org.opencontainers.image.description="A read-only HTTP API that lists and searches the package names of a public registry" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}" \
      org.opencontainers.image.source="${SOURCE}"
