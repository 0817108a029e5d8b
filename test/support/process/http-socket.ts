// An HTTP/1.1 client on a bare socket: sends what it is given, byte by byte if need be, and reads whole answers.
import { connect, type Socket } from 'node:net';

export type RawAnswer = {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
};

export type RawClient = {
  send(text: string): void;
  /** The next answer; rejects where the connection ends before it is whole. `head`: the answer to a HEAD. */
  answer(options?: { readonly head?: boolean }): Promise<RawAnswer>;
  /** Resolves when the other side has closed. */
  readonly closed: Promise<void>;
  destroy(): void;
};

export async function rawClient(port: number): Promise<RawClient> {
  const socket = await connected(port);
  let received = '';
  let ended = false;
  const waiting = new Set<() => void>();
  const wake = () => {
    for (const check of waiting) check();
  };
  const closed = new Promise<void>((resolve) => {
    const end = () => {
      ended = true;
      wake();
      resolve();
    };
    socket.on('end', end).on('close', end);
  });
  socket.on('error', () => undefined);
  socket.on('data', (chunk) => {
    received += chunk.toString('latin1');
    wake();
  });
  return {
    closed,
    send: (text) => void socket.write(text),
    destroy: () => void socket.destroy(),
    answer: ({ head = false } = {}) =>
      new Promise((resolve, reject) => {
        const check = () => {
          const read = readAnswer(received, head);
          if (read === null && !ended) return;
          waiting.delete(check);
          if (read === null)
            return reject(new Error(`the connection ended after ${JSON.stringify(received)}`));
          received = read.rest;
          resolve(read.answer);
        };
        waiting.add(check);
        check();
      }),
  };
}

function connected(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => resolve(socket));
    socket.once('error', reject);
  });
}

function readAnswer(text: string, head: boolean): { answer: RawAnswer; rest: string } | null {
  const end = text.indexOf('\r\n\r\n');
  if (end < 0) return null;
  const [statusLine = '', ...lines] = text.slice(0, end).split('\r\n');
  const headers = new Map(
    lines.map((line) => [
      line.slice(0, line.indexOf(':')).toLowerCase(),
      line.slice(line.indexOf(':') + 1).trim(),
    ]),
  );
  const start = end + 4;
  const length = head ? 0 : Number(headers.get('content-length') ?? 0);
  if (text.length < start + length) return null;
  const answer = {
    status: Number(statusLine.split(' ')[1]),
    headers,
    body: text.slice(start, start + length),
  };
  return { answer, rest: text.slice(start + length) };
}
