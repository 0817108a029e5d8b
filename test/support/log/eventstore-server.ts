// A test server for EventStoreDB 23.10.6, one node: the services that the stock client calls, on a loopback port, with the
// answers of a real node (eventstore-server.test.ts tests both) and with fault injection. Its memory survives `stop`, as a
// node's disk does.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import gossip from '@eventstore/db-client/generated/gossip_grpc_pb.js';
import gossipMessages from '@eventstore/db-client/generated/gossip_pb.js';
import streams from '@eventstore/db-client/generated/streams_grpc_pb.js';
import { Server, ServerCredentials, type sendUnaryData } from '@grpc/grpc-js';
import { fixedPort } from '#test/support/process/fixed-port.ts';
import type { TestCa } from '#test/support/process/test-ca.ts';
import {
  appendCall,
  type Credentials,
  deleteCall,
  type ServerNode,
  serverNode,
  tombstoneCall,
} from './eventstore-server-append.ts';
import { type ServerLog, type StoredEvent, serverLog } from './eventstore-server-log.ts';
import { consumerTooSlow } from './eventstore-server-messages.ts';
import { startFront, startTlsEnd, withoutGoaway } from './eventstore-server-network.ts';
import { readCall } from './eventstore-server-read.ts';

export type EventStoreServerOptions = {
  /** Any free port if absent. */
  readonly port?: number;
  /** Issues a certificate for `localhost`. */
  readonly tls?: TestCa;
  /** Required for every call to a stream. The client sends them over TLS only. */
  readonly credentials?: Credentials;
  /** The first events of another server: it is restored from them. */
  readonly backup?: readonly StoredEvent[];
};

export type EventStoreServer = {
  /** A connection string with valid credentials. */
  readonly url: string;
  readonly port: number;
  /** Like kill -9: every connection ends at once; acknowledged events are kept. */
  stop(): Promise<void>;
  /** Starts on the same port, with all stored events. */
  start(): Promise<void>;
  readonly faults: ServerFaults;
  /** Writes `$metadata` and `$statsCollected`, as a node does between the events of clients. */
  writeSystemEvents(count: number): void;
  /** All stored events, those of the system too, in order of position. */
  readonly events: readonly StoredEvent[];
  /** Appends stored so far; repeats do not count. */
  appends(): number;
  /** Subscriptions that are open now. */
  subscriptions(): number;
  /** TCP connections that are open now. */
  connections(): number;
  /** Frees the port and the certificate's file. */
  end(): Promise<void>;
};

export type ServerFaults = {
  /**
   * Like a node stopped by a signal: connections are accepted, nothing is answered. Calls received meanwhile are processed
   * at `thaw`, unless their deadline has passed by then.
   */
  freeze(): void;
  /** Resolves when all waiting bytes are forwarded to the node. */
  thaw(): Promise<void>;
  /** Closes every connection; new ones are accepted. */
  drop(): void;
  /** The next `count` appends, but those to `spared`, are stored, and their connection is cut instead of an answer. */
  loseAnswers(count: number, spared?: string): void;
  /** The next `count` appends are not stored, and answered with a time-out. */
  refuseAppends(count: number): void;
  /** Appends with an event of this type are not stored, and answered with a time-out, until `on` is false. */
  refuseType(type: string, on: boolean): void;
  /** Drops every open subscription as a consumer that is too slow. */
  dropSubscriptions(): void;
  /** Drops each subscription so after that many events since it caught up; null: never. */
  dropSubscriptionsAfter(events: number | null): void;
};

export async function startEventStoreServer(
  options: EventStoreServerOptions = {},
): Promise<EventStoreServer> {
  const { tls, credentials, backup } = options;
  const log = serverLog(backup);
  const grpc = new Server({ 'grpc.max_receive_message_length': 17 * 1024 * 1024 });
  const plain = await bound(grpc);
  const secure = tls && (await startTlsEnd(tls.issue({ names: ['localhost'] }), plain));
  const front = await startFront({
    behind: secure?.port ?? plain,
    port: options.port ?? (await fixedPort()),
    origin: (port) => secure?.origin(port) ?? port,
    // Behind TLS its end leaves them out.
    filter: () => (secure === undefined ? withoutGoaway() : (chunk) => chunk),
  });
  const node = serverNode(log, front, credentials);
  serve(grpc, node, tls === undefined ? '127.0.0.1' : 'localhost');

  const folder = tls && mkdtempSync(join(tmpdir(), 'eventstore-server-'));
  const caFile = folder && join(folder, 'ca.crt');
  if (tls !== undefined && caFile !== undefined) writeFileSync(caFile, tls.pem);
  const { armed } = node;
  return {
    url: connectionString(front.port, caFile, credentials),
    port: front.port,
    stop: () => front.stop(),
    start: () => front.start(),
    faults: {
      freeze: () => front.freeze(),
      thaw: () => front.thaw(),
      drop: () => front.cutAll(),
      loseAnswers: (count, spared) => {
        armed.loseAnswers = count;
        armed.sparedStream = spared ?? null;
      },
      refuseAppends: (count) => {
        armed.refuseAppends = count;
      },
      refuseType: (type, on) => {
        if (on) armed.refusedTypes.add(type);
        else armed.refusedTypes.delete(type);
      },
      dropSubscriptions: () => {
        for (const subscription of [...node.subscriptions]) subscription.drop(consumerTooSlow());
      },
      dropSubscriptionsAfter: (events) => {
        armed.tooSlowAfter = events;
      },
    },
    ...watched(log),
    subscriptions: () => node.subscriptions.size,
    connections: () => front.connections(),
    end: async () => {
      await front.stop();
      secure?.close();
      grpc.forceShutdown();
      if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
    },
  };
}

const watched = (log: ServerLog) => ({
  writeSystemEvents: (count: number) => log.writeSystemEvents(count),
  events: log.events,
  appends: () => log.appends(),
});

function connectionString(
  port: number,
  caFile: string | undefined,
  credentials: Credentials | undefined,
): string {
  const user =
    credentials && `${encodeURIComponent(credentials.username)}:${encodeURIComponent(credentials.password)}@`;
  if (caFile === undefined) return `esdb://${user ?? ''}127.0.0.1:${port}?tls=false`;
  return `esdb://${user ?? ''}localhost:${port}?tls=true&tlsCAFile=${encodeURIComponent(caFile)}`;
}

/** Port of 127.0.0.1. */
function bound(grpc: Server): Promise<number> {
  const credentials = ServerCredentials.createInsecure();
  return new Promise((resolve, reject) => {
    grpc.bindAsync('127.0.0.1:0', credentials, (error, port) => (error ? reject(error) : resolve(port)));
  });
}

/** `host`: as the certificate names it. */
function serve(grpc: Server, node: ServerNode, host: string): void {
  grpc.addService(streams.StreamsService, {
    read: readCall(node),
    append: appendCall(node),
    delete: deleteCall(node),
    tombstone: tombstoneCall(node),
  });
  grpc.addService(gossip.GossipService, {
    read: (_call: unknown, reply: sendUnaryData<unknown>) => reply(null, oneLeader(host, node.front.port)),
  });
}

function oneLeader(host: string, port: number) {
  const member = new gossipMessages.MemberInfo()
    .setState(gossipMessages.MemberInfo.VNodeState.LEADER)
    .setIsAlive(true)
    .setTimeStamp(String(Date.now() * 10_000))
    .setHttpEndPoint(new gossipMessages.EndPoint().setAddress(host).setPort(port));
  return new gossipMessages.ClusterInfo().setMembersList([member]);
}
