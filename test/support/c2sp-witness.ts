// A witness written only from the text of C2SP tlog-witness, with node:http and c2sp.ts, for the log on the other side.
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type C2spKey, c2spCosignature, c2spIsConsistent, c2spRoot, c2spVerify } from './c2sp.ts';

export type C2spAnswer = { readonly status: number; readonly type?: string; readonly body: string };

export type C2spWitness = {
  readonly url: string;
  /** What it has cosigned last of each log. */
  readonly seen: ReadonlyMap<string, { readonly size: number; readonly root: Buffer; readonly note: string }>;
  /** All requests of add-checkpoint, with the status that each was answered with. */
  readonly asked: readonly { readonly body: string; readonly status: number }[];
  close(): Promise<void>;
};

/** `key`: of the witness. `logs`: of the logs, by origin. `now`: Unix seconds. */
export async function startC2spWitness(
  key: C2spKey,
  logs: () => readonly C2spKey[],
  now: () => number = () => Math.floor(Date.now() / 1000),
): Promise<C2spWitness> {
  const seen = new Map<string, { size: number; root: Buffer; note: string }>();
  const asked: { body: string; status: number }[] = [];

  function add(body: string): C2spAnswer {
    const border = body.indexOf('\n\n');
    const [oldLine = '', ...hashes] = body.slice(0, border).split('\n');
    const [, old] = /^old (0|[1-9][0-9]*)$/.exec(oldLine) ?? [];
    const checkpoint = body.slice(border + 2);
    const text = checkpoint.slice(0, checkpoint.lastIndexOf('\n\n') + 1);
    const lines = checkpoint
      .slice(text.length + 1)
      .split('\n')
      .slice(0, -1);
    const [origin = '', size = '', root64 = ''] = text.split('\n');
    if (border < 0 || old === undefined || hashes.length > 63 || lines.length === 0)
      return { status: 400, body: 'malformed\n' };
    const keys = logs().filter(({ name }) => name === origin);
    if (keys.length === 0) return { status: 404, body: 'unknown\n' };
    const verified = lines.filter((line) => keys.some((log) => c2spVerify(text, line, log) !== null));
    if (verified.length === 0) return { status: 403, body: 'not signed\n' };
    if (Number(old) > Number(size)) return { status: 400, body: 'old size\n' };
    const last = seen.get(origin) ?? { size: 0, root: c2spRoot([]) };
    if (Number(old) !== last.size) return { status: 409, type: 'text/x.tlog.size', body: `${last.size}\n` };
    const root = Buffer.from(root64, 'base64');
    const proof = hashes.map((hash) => Buffer.from(hash, 'base64'));
    const [from, to] = [last.size, Number(size)];
    if (to === 0 && !root.equals(c2spRoot([]))) return { status: 422, body: 'empty root\n' };
    if (!c2spIsConsistent({ from, to }, { from: last.root, to: root }, proof))
      return { status: 422, body: 'inconsistent\n' };
    const cosignature = c2spCosignature(text, key, now());
    seen.set(origin, { size: to, root, note: `${text}\n${verified.join('\n')}\n${cosignature}` });
    return { status: 200, body: cosignature };
  }

  const server = createServer(async (request, response) => {
    const answer = async (): Promise<C2spAnswer> => {
      if (request.method === 'POST' && request.url === '/add-checkpoint') {
        const body = await textOf(request);
        const added = add(body);
        asked.push({ body, status: added.status });
        return added;
      }
      for (const [origin, { note }] of seen)
        if (request.url === `/${createHash('sha256').update(origin).digest('hex')}/checkpoint`)
          return { status: 200, body: note };
      return { status: 404, body: 'none\n' };
    };
    const { status, type = 'text/plain', body } = await answer();
    response.writeHead(status, { 'content-type': type }).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    seen,
    asked,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}
