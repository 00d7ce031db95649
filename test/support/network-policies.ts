import { BlockList, isIPv4 } from 'node:net';

type Labels = Record<string, string>;

interface Selector {
  matchLabels?: Labels;
}

interface Peer {
  podSelector?: Selector;
  namespaceSelector?: Selector;
  ipBlock?: { cidr: string; except?: string[] };
}

interface Port {
  protocol: string;
  port: number;
}

interface Rule {
  from?: Peer[];
  to?: Peer[];
  ports?: Port[];
}

/** A NetworkPolicy. Its `policyTypes` are required here, so that none depends on their default. */
export interface NetworkPolicy {
  spec: {
    podSelector: Selector;
    policyTypes: ('Ingress' | 'Egress')[];
    ingress?: Rule[];
    egress?: Rule[];
  };
}

/** One end of a connection: a pod, or an address outside of the cluster. */
export type Endpoint = { namespace: string; labels: Labels } | { address: string };

/**
 * Evaluates the network policies of one namespace as Kubernetes specifies them: a pod that no policy of a direction selects
 * is open in that direction; otherwise one rule of any policy that selects it must allow the connection.
 * @throws {Error} at what it does not know, such as `matchExpressions`, `endPort` or the name of a port.
 */
export function isAllowed(
  policies: readonly NetworkPolicy[],
  namespace: string,
  { from, to, port }: { from: Endpoint; to: Endpoint; port: Port },
): boolean {
  const passes = (type: 'Ingress' | 'Egress', self: Endpoint, other: Endpoint) => {
    const selecting = policies.filter(
      ({ spec }) =>
        spec.policyTypes.includes(type) && matchesPeer({ podSelector: spec.podSelector }, self, namespace),
    );
    if (selecting.length === 0) return true;
    const rules = selecting.flatMap(({ spec }) => (type === 'Ingress' ? spec.ingress : spec.egress) ?? []);
    return rules.some((rule) => {
      const { from: sources, to: targets, ports, ...unknown } = rule;
      assertEmpty(unknown);
      const peers = type === 'Ingress' ? sources : targets;
      return (
        (peers === undefined || peers.some((peer) => matchesPeer(peer, other, namespace))) &&
        (ports === undefined || ports.some((one) => isSamePort(one, port)))
      );
    });
  };
  return passes('Egress', from, to) && passes('Ingress', to, from);
}

function matchesPeer(peer: Peer, endpoint: Endpoint, ownNamespace: string): boolean {
  const { podSelector, namespaceSelector, ipBlock, ...unknown } = peer;
  assertEmpty(unknown);
  // Plug-ins differ in whether blocks of addresses match pods: these are for addresses outside only.
  if ('address' in endpoint) return ipBlock !== undefined && isWithin(endpoint.address, ipBlock);
  if (ipBlock !== undefined) return false;
  const isInNamespace =
    namespaceSelector === undefined
      ? endpoint.namespace === ownNamespace
      : matches(namespaceSelector, { 'kubernetes.io/metadata.name': endpoint.namespace });
  return isInNamespace && matches(podSelector ?? {}, endpoint.labels);
}

function matches({ matchLabels = {}, ...unknown }: Selector, labels: Labels): boolean {
  assertEmpty(unknown);
  return Object.entries(matchLabels).every(([name, value]) => labels[name] === value);
}

function isWithin(address: string, { cidr, except = [] }: { cidr: string; except?: string[] }): boolean {
  return contains(cidr, address) && !except.some((block) => contains(block, address));
}

function contains(cidr: string, address: string): boolean {
  const [network = '', bits] = cidr.split('/');
  const family = (text: string) => (isIPv4(text) ? 'ipv4' : 'ipv6');
  if (family(network) !== family(address)) return false;
  const list = new BlockList();
  list.addSubnet(network, Number(bits), family(network));
  return list.check(address, family(address));
}

function isSamePort({ protocol, port, ...unknown }: Port, wanted: Port): boolean {
  assertEmpty(unknown);
  if (typeof port !== 'number') throw new Error(`the port ${String(port)} is not a number`);
  return protocol === wanted.protocol && port === wanted.port;
}

function assertEmpty(unknown: object): void {
  const [name] = Object.keys(unknown);
  if (name !== undefined) throw new Error(`${name} is not evaluated`);
}
