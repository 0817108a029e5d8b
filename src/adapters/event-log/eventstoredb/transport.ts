// What a gRPC channel to the server is made of: where to, which certificates, which limits, what goes along with each
// call, and how the faults of a call are told apart.
import { Buffer } from 'node:buffer';
import { GossipClient } from '@eventstore/db-client/generated/gossip_grpc_pb.js';
import gossip, { type ClusterInfo } from '@eventstore/db-client/generated/gossip_pb.js';
import shared from '@eventstore/db-client/generated/shared_pb.js';
import {
  type ChannelCredentials,
  type ChannelOptions,
  credentials as grpcCredentials,
  Metadata,
  status,
} from '@grpc/grpc-js';
import type { EventStoreSettings, Host } from './url.ts';

/** `host:port`. */
export type Target = string;

export type Transport = {
  /** The one server, or the leader that the cluster tells of. Throws where no host answers. */
  findTarget(): Promise<Target>;
  readonly credentials: ChannelCredentials;
  readonly options: ChannelOptions;
  /** What goes along with a call; a new one for each. */
  metadata(): Metadata;
};

/** The server allows events of 16 MB, however they were written. */
const LARGEST_ANSWER = 17 * 1024 * 1024;

export function transport(settings: EventStoreSettings, timeLimitMs: number): Transport {
  const credentials = credentialsOf(settings);
  const options = channelOptions(settings);
  const [first] = settings.hosts;
  return {
    credentials,
    options,
    async findTarget() {
      if (!settings.discover && first !== undefined) return targetOf(first);
      // Each host gets its share of the time of the call that waits for this.
      const share = timeLimitMs / (settings.hosts.length + 1);
      for (const host of [...settings.hosts].sort(() => Math.random() - 0.5)) {
        const leader = await askForLeader(host, credentials, options, share).catch(() => null);
        if (leader !== null) return leader;
      }
      throw new Error('no host of the cluster tells of a leader');
    },
    metadata() {
      const metadata = new Metadata();
      metadata.add('connection-name', settings.connectionName);
      // Appends and reads alike: what was acknowledged is to be seen.
      metadata.add('requires-leader', 'true');
      if (settings.credentials !== null && settings.tls !== null) {
        const { username, password } = settings.credentials;
        const pair = Buffer.from(`${username}:${password}`).toString('base64');
        metadata.add('authorization', `Basic ${pair}`);
      }
      return metadata;
    },
  };
}

function credentialsOf({ tls }: EventStoreSettings): ChannelCredentials {
  if (tls === null) return grpcCredentials.createInsecure();
  return grpcCredentials.createSsl(tls.ca, tls.user?.key ?? null, tls.user?.cert ?? null);
}

function channelOptions({ keepAliveMs, keepAliveTimeoutMs }: EventStoreSettings): ChannelOptions {
  return {
    'grpc.keepalive_time_ms': keepAliveMs === -1 ? Number.MAX_SAFE_INTEGER : keepAliveMs,
    'grpc.keepalive_timeout_ms': keepAliveTimeoutMs === -1 ? Number.MAX_SAFE_INTEGER : keepAliveTimeoutMs,
    'grpc.max_receive_message_length': LARGEST_ANSWER,
    // Without these the pauses between connections grow to two minutes.
    'grpc.initial_reconnect_backoff_ms': 100,
    'grpc.max_reconnect_backoff_ms': 1000,
    // A new channel gets a connection of its own, not the one that went dumb.
    'grpc.use_local_subchannel_pool': 1,
    'grpc.service_config_disable_resolution': 1,
    // The log is not behind a web proxy.
    'grpc.enable_http_proxy': 0,
  };
}

const targetOf = ({ address, port }: Host): Target => `${address}:${port}`;

function askForLeader(
  host: Host,
  credentials: ChannelCredentials,
  options: ChannelOptions,
  limitMs: number,
): Promise<Target | null> {
  const client = new GossipClient(targetOf(host), credentials, options);
  return new Promise<ClusterInfo>((resolve, reject) => {
    const late = setTimeout(() => reject(new Error('no answer')), limitMs);
    client.read(new shared.Empty(), new Metadata(), { deadline: Date.now() + limitMs }, (error, members) => {
      clearTimeout(late);
      if (error === null) resolve(members);
      else reject(error);
    });
  })
    .then(leaderIn)
    .finally(() => client.close());
}

function leaderIn(cluster: ClusterInfo): Target | null {
  const { LEADER } = gossip.MemberInfo.VNodeState;
  const leader = cluster
    .getMembersList()
    .find((member) => member.getIsAlive() && member.getState() === LEADER);
  const place = leader?.getHttpEndPoint();
  return place === undefined ? null : targetOf({ address: place.getAddress(), port: place.getPort() });
}

export type Fault = {
  /** The server's word for it; empty where it said none. */
  readonly reason: string;
  /** No connection, or no server that takes calls. */
  readonly away: boolean;
  /** Where the server said that the leader is. */
  readonly leader: Target | null;
};

export function faultOf(error: Error): Fault {
  const metadata =
    'metadata' in error && error.metadata instanceof Metadata ? error.metadata : new Metadata();
  const word = (name: string) => String(metadata.get(name)[0] ?? '');
  const reason = word('exception');
  const leader = `${word('leader-endpoint-host')}:${word('leader-endpoint-port')}`;
  return {
    reason,
    away: 'code' in error && error.code === status.UNAVAILABLE,
    leader: reason === 'not-leader' ? leader : null,
  };
}
