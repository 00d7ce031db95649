/*
 * Reports 65535 open files when preloaded. Elasticsearch requires that many of the nodes of a cluster, and some machines
 * cannot give them to a container. The few indices of a test need far fewer.
 */
struct limit { unsigned long soft, hard; };
int prlimit(int process, int resource, const struct limit *given, struct limit *found);
int getrlimit(int resource, struct limit *limit) {
  int result = prlimit(0, resource, 0, limit);
  if (resource == 7 && limit->hard < 65535) limit->hard = limit->soft = 65535;
  return result;
}
int getrlimit64(int resource, struct limit *limit) { return getrlimit(resource, limit); }
