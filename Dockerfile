# The service alone: `node dist/main.js`, and the commands of `dist/cli`. It wants an Elasticsearch in ELASTICSEARCH_URL.

FROM node:24-trixie-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# No dependency needs its install script.
RUN npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
COPY tsconfig.json ./
COPY src src
# `dist/dev` is `npm start` on a bare machine, and needs what is left out here.
RUN npm run --silent build && rm -rf dist/dev dist/.tsbuildinfo* \
 && npm prune --omit=dev --ignore-scripts --no-audit --no-fund --loglevel=error

FROM node:24-trixie-slim
ENV NODE_ENV=production HOST=0.0.0.0 PORT=3000
WORKDIR /app
COPY LICENSE package.json ./
COPY data data
COPY deploy/kibana deploy/kibana
COPY mappings mappings
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/dist dist
USER node
EXPOSE 3000
# Healthy means that the process answers. Whether it has data (`/health`) is no reason to restart it: a first load of
# millions of names takes minutes, and Elasticsearch may be away.
HEALTHCHECK --interval=5s --timeout=3s --start-period=10s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/ping`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
# Without a shell or npm in between, so that SIGTERM reaches it. Node 24 lets the young generation grow with the memory of
# the machine; 16 MB, the limit of Node 20, costs searches nothing that could be measured, and saves about 90 MB.
CMD ["node", "--max-semi-space-size=16", "dist/main.js"]
