/*
 * For tests on a machine that cannot give a container the 65535 open files on which Elasticsearch insists where nodes
 * meet: to be preloaded, it reports that many. The few indices of a test need a fraction of them.
 */
struct limit { unsigned long soft, hard; };
int prlimit(int process, int resource, const struct limit *given, struct limit *found);
int getrlimit(int resource, struct limit *limit) {
  int result = prlimit(0, resource, 0, limit);
  if (resource == 7 && limit->hard < 65535) limit->hard = limit->soft = 65535;
  return result;
}
int getrlimit64(int resource, struct limit *limit) { return getrlimit(resource, limit); }
