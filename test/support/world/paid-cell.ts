// The deployment of a paid journey in the cell that runs: its event log, and its processes as one service.
import assert from 'node:assert/strict';
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { eventStoreDbEventLog } from '#src/adapters/event-log/eventstoredb/event-log.ts';
import { sqliteEventLog } from '#src/adapters/event-log/sqlite/event-log.ts';
import { createKeyFile } from '#src/adapters/signing/key-file.ts';
import { type LogConfig, readLogConfig } from '#src/config.ts';
import type { EventType } from '#src/domain/events.ts';
import type { EventLog, RecordedEvent } from '#src/ports/event-log.ts';
import { type EventStoreServer, startEventStoreServer } from '#test/support/log/eventstore-server.ts';
import { holdBack } from '#test/support/log/held-appends.ts';
import { ON_SERVER, PAID_ROWS } from '#test/support/process/cells.ts';
import type { Ended, Environment, Service } from '#test/support/process/service.ts';
import { allOf } from './service-log.ts';

/** The event log of one deployment. */
export type PaidLog = {
  /** What its processes and commands get. */
  readonly env: Environment;
  /** As `openOperatorLog` takes it. */
  readonly config: LogConfig;
  /** The caller closes it. */
  open(): Promise<EventLog>;
  /** All events in global order. */
  recorded(): Promise<RecordedEvent[]>;
  /** No event of this type is stored until the function is called that it returns. */
  hold(type: EventType): () => void;
  end(): Promise<void>;
};

/** `folder`: for the key file of a deployment that shares its event log over the network. */
export async function makePaidLog(dataDir: string, folder: string): Promise<PaidLog> {
  const server = ON_SERVER ? await startEventStoreServer() : null;
  const open = () =>
    server === null
      ? sqliteEventLog({ file: join(dataDir, 'events.db') })
      : Promise.resolve(eventStoreDbEventLog({ url: server.url }));
  const env = server === null ? {} : onServer(server, join(folder, `keys-${server.port}`, 'keys.json'));
  return {
    env,
    config: readLogConfig({ DATA_DIR: dataDir, ...env }),
    open,
    recorded: async () => allOf(await open()),
    hold(type) {
      if (server === null) return holdBack(dataDir, type);
      server.faults.refuseType(type, true);
      return () => server.faults.refuseType(type, false);
    },
    end: async () => server?.end(),
  };
}

function onServer({ url }: EventStoreServer, keyFile: string): Environment {
  createKeyFile(keyFile);
  return { EVENTSTORE_URL: url, SIGNING_KEYS_FILE: keyFile };
}

/** Processes of one deployment as one service: each use of `url` names the next process. */
export function together(services: readonly Service[]): Service {
  const [first = assert.fail('no process')] = services;
  if (services.length === 1) return first;
  let uses = 0;
  const every = async (end: (service: Service) => Promise<Ended>): Promise<Ended> => {
    const all = await Promise.all(services.map(end));
    const worst = all.find(({ code }) => code !== 0) ?? all[0] ?? assert.fail();
    const join = (name: 'stdout' | 'stderr') => all.map((ended) => ended[name]).join('');
    return { ...worst, stdout: join('stdout'), stderr: join('stderr') };
  };
  return {
    pid: first.pid,
    get url() {
      return (services[uses++ % services.length] ?? first).url;
    },
    stdout: () => services.map((service) => service.stdout()).join(''),
    stderr: () => services.map((service) => service.stderr()).join(''),
    ended: every(({ ended }) => ended),
    signal: (name) => {
      for (const service of services) service.signal(name);
    },
    stop: () => every((service) => service.stop()),
    kill: () => every((service) => service.kill()),
  };
}

const counted = new Set<string>();

/** Counts the payments whose books were as they must be, each once, by the first part of its path: for the runner's table. */
export function countRows(paths: readonly string[]): void {
  const file = process.env[PAID_ROWS];
  if (file === undefined) return;
  for (const path of paths) {
    if (counted.has(path)) continue;
    counted.add(path);
    const [, row = ''] = path.split('/');
    appendFileSync(file, `${row}\n`);
  }
}
