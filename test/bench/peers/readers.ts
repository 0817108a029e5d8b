// The readers of P10: CLIENTS closed loops that read public figures with parameters that differ from request to request, and
// wait for nothing they are asked to wait for. Each has a client address of its own, or all are on the relay's machine.
import { Elysia } from 'elysia';

const CLIENTS = 64;
const { RELAY = '' } = process.env;

let reading: 'addresses' | 'loopback' | null = null;
let n = 0;
const answered = new Map<number, number>();

/** Every request differs: no cache that is filled by parameters helps. */
function path(): string {
  n += 1;
  const windowMs = 60_000 + ((n * 7_919_131) % (30 * 86_400_000 - 60_000));
  const limit = 1 + (n % 50);
  const paths = [
    `/api/monitoring/executions?windowMs=${windowMs}`,
    `/status?windowMs=${windowMs}`,
    `/api/proofs/recent?limit=${limit}`,
    `/api/decisions/recent?limit=${limit}`,
    `/api/trust?n=${n}`,
  ];
  return paths[n % paths.length] ?? '';
}

async function read(client: number): Promise<void> {
  while (true) {
    if (reading === null) {
      await new Promise((resolve) => setTimeout(resolve, 5));
      continue;
    }
    const headers: Record<string, string> =
      reading === 'addresses' ? { 'x-forwarded-for': `198.51.100.${client + 1}` } : {};
    try {
      const response = await fetch(`${RELAY}${path()}`, { headers });
      await response.arrayBuffer();
      answered.set(response.status, (answered.get(response.status) ?? 0) + 1);
    } catch {
      answered.set(0, (answered.get(0) ?? 0) + 1);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}
for (let client = 0; client < CLIENTS; client++) void read(client);

const app = new Elysia()
  .post('/on/:from', ({ params: { from } }) => {
    reading = from === 'loopback' ? 'loopback' : 'addresses';
    answered.clear();
    return {};
  })
  .post('/off', () => {
    reading = null;
    return Object.fromEntries(answered);
  });
app.listen({ hostname: '127.0.0.1', port: 0 });
console.log(JSON.stringify({ msg: 'listening', listen: `127.0.0.1:${app.server?.port}` }));
