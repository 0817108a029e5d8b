// The doctor on the address that the service listens at, which is taken for a moment only if nothing listens there.
import { connect, createServer } from 'node:net';
import type { Config } from '#src/config.ts';
import { parsedJson } from '#src/domain/canonical-json.ts';
import { SERVICE } from '#src/domain/limits.ts';
import { shapeCheck } from '#src/domain/shape-check.ts';
import { HealthResponse } from '#src/http/routes/health.ts';
import { systemCode } from '#src/lib/system-error.ts';
import { urlHost } from '#src/lib/url-host.ts';
import { type Checked, fine, problem, skipped, warning } from './finding.ts';

/** Listening on every address includes this machine's own. */
const LOOPBACK: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };

export type Living = { readonly url: string; readonly lives: boolean };

/** Whether a relay that listens at HOST and PORT answers `/health/live` within `ms`. */
export async function askLiving(host: string, port: number, ms: number): Promise<Living> {
  const url = `http://${urlHost(LOOPBACK[host] ?? host)}:${port}/health/live`;
  const lives = await fetch(url, { signal: AbortSignal.timeout(ms) })
    .then(async (answer) => answer.status === 200 && isOurs(parsedJson(await answer.text())))
    .catch(() => false);
  return { url, lives };
}

/** The code of a request's failure. */
export const noAnswer = (error: unknown): string =>
  systemCode(error) ?? (error instanceof Error ? error.name : 'no answer');

const SELF_MS = 5000;

/** Of the service's own `url`, which gave no answer: that is to be expected where no service runs. */
export async function unanswered(url: string, reason: string, listen: Config['listen']): Promise<Checked> {
  const lives = listen.port !== 0 && (await askLiving(listen.host, listen.port, SELF_MS)).lives;
  return lives
    ? warning(`${url} is not reached from this machine (${reason}): ask it from another one`)
    : skipped('no service answers here: ask again beside the running one');
}

/** Another program may answer 200 at any path. */
const isOurs = (body: unknown): boolean =>
  typeof body === 'object' && body !== null && 'service' in body && body.service === SERVICE.name;

const ANSWER_MS = 2000;

type Stated = { readonly wrong: readonly string[]; readonly refusing: readonly string[] };

/**
 * Of `/health`: the sentences of the parts that are not ok, as the service states them, and the witnesses that do not cosign.
 * null: it does not answer.
 */
async function askHealth(host: string, port: number): Promise<Stated | null> {
  const url = `http://${urlHost(LOOPBACK[host] ?? host)}:${port}/health`;
  const answer = await fetch(url, { signal: AbortSignal.timeout(ANSWER_MS) })
    .then(async (given) => parsedJson(await given.text()))
    .catch(() => null);
  if (!isHealth(answer)) return null;
  const { checks, witnesses } = answer;
  return {
    wrong: Object.entries(checks).flatMap(([part, state]) =>
      state === null || state.ok ? [] : [`${part}: ${state.message ?? state.reason ?? 'not ok'}`],
    ),
    refusing: witnesses?.refusing.map(({ name, reason }) => `${name} (${reason})`) ?? [],
  };
}

const isHealth = shapeCheck(HealthResponse);

export async function checkListen({ listen: { host, port } }: Config): Promise<Checked> {
  if (port !== 0) {
    if ((await askLiving(host, port, ANSWER_MS)).lives) {
      const text = `a service answers at ${host}, port ${port}`;
      const stated = await askHealth(host, port);
      if (stated === null) return problem(`${text}, and its /health does not, or is of another release`);
      const { wrong, refusing } = stated;
      const silent = refusing.length === 0 ? [] : [`witnesses that do not cosign: ${refusing.join(', ')}`];
      const said = `${text}, and its /health states: ${[...wrong, ...silent].join(' ')}`;
      if (wrong.length > 0) return problem(said);
      return refusing.length > 0 ? warning(said) : fine(text);
    }
    if (await isTaken(LOOPBACK[host] ?? host, port))
      return problem(
        `another program listens at ${host}, port ${port}, or the service there does not answer: end it, or set another PORT`,
      );
  }
  const refused = await refusedListening(host, port);
  if (refused !== null)
    return problem(`${host}, port ${port}, cannot be listened at (${refused}): ${doing(refused)}`);
  return fine(port === 0 ? `any free port of ${host}` : `${host}, port ${port}, is free`);
}

const doing = (code: string): string =>
  code === 'EACCES'
    ? 'set a PORT from 1024 on, or let this user use lower ones (CAP_NET_BIND_SERVICE)'
    : 'set HOST to an address of this machine';

/** Listens for a moment: a name without an address, an address of another machine and a port of root's show there alone. */
function refusedListening(host: string, port: number): Promise<string | null> {
  return new Promise((resolve) => {
    const server = createServer((socket) => socket.destroy());
    server.once('error', (error) => resolve(systemCode(error) ?? error.name));
    server.listen({ host, port }, () => server.close(() => resolve(null)));
  });
}

function isTaken(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: ANSWER_MS });
    const end = (taken: boolean) => {
      socket.destroy();
      resolve(taken);
    };
    socket.once('connect', () => end(true));
    socket.once('timeout', () => end(false));
    socket.once('error', () => end(false));
  });
}
