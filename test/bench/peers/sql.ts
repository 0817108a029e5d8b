// The peer of a read of one record: one statement by postgres.js behind one route of Elysia.
import { Elysia } from 'elysia';
import postgres from 'postgres';

const { DATABASE_URL = '', DATABASE_SCHEMA = '', STATEMENT = '' } = process.env;
const connection = { search_path: `"${DATABASE_SCHEMA}"`, enable_seqscan: 'off', jit: 'off' };
const client = postgres(DATABASE_URL, { max: 10, connection });

const app = new Elysia().get('/:id', async ({ params, status }) => {
  const [row] = await client.unsafe(STATEMENT, [params.id], { prepare: true });
  return row ?? status(404, 'not found');
});
app.listen({ hostname: '127.0.0.1', port: 0 });
console.log(JSON.stringify({ msg: 'listening', listen: `127.0.0.1:${app.server?.port}` }));
