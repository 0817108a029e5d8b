// The peer of documents and starts: Elysia that answers with bytes it was given at its start.
import { readFileSync } from 'node:fs';
import { Elysia } from 'elysia';

const { BODY_FILE = '', CONTENT_TYPE = 'application/json' } = process.env;
const bytes = BODY_FILE === '' ? new TextEncoder().encode('{"ok":true}') : readFileSync(BODY_FILE);

const app = new Elysia().get('*', () => new Response(bytes, { headers: { 'content-type': CONTENT_TYPE } }));
app.listen({ hostname: '127.0.0.1', port: 0 });
console.log(JSON.stringify({ msg: 'listening', listen: `127.0.0.1:${app.server?.port}` }));
