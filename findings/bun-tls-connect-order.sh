#!/bin/sh
# Bun 1.4.4, node:tls, found 2026-11-29.
#
# The good guess: clients that connect by `tls.connect` wait about equally long. Of 64 that connect at a time, one that began early is
# overtaken by a few dozen others at most. Node 20 does that, and so does Bun if TLS runs over a stream of its own
# (`tls.connect({ socket: duplex })`).
# What happens: native `tls.connect` of Bun continues five handshakes in each turn of the event loop, the newest first. As soon as
# the process has work to do for each connection (here 2 ms), new connections come as fast as old ones are served, and about one of
# a hundred is served last of all: nearly all 1,500 overtake it, whenever it began.
# Why it matters: under a steady load 1 % of the requests to healthy servers run into their time limit, while the median shows
# nothing; more callers make it worse. It looks like a slow server. A limit of connections that are made at the same time, or TLS
# over a stream, ends it.
#
# Runs without the product, on a TLS server of its own on 127.0.0.1; the clients check its certificate. Exits 0 if Bun behaves as
# stated, 1 if it no longer does.
set -eu
folder=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$folder"' EXIT
cd "$folder"
printf '{"private":true}' > package.json
npm install --silent --no-audit --no-fund bun@1.4.4 node-forge@1.3.1

cat > certificate.cjs <<'JS'
const forge = require('node-forge');
const { generateKeyPairSync } = require('node:crypto');
const { writeFileSync } = require('node:fs');
const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
const pem = privateKey.export({ type: 'pkcs1', format: 'pem' });
const key = forge.pki.privateKeyFromPem(pem);
const certificate = forge.pki.createCertificate();
certificate.publicKey = forge.pki.setRsaPublicKey(key.n, key.e);
certificate.serialNumber = '01';
certificate.validity.notBefore = new Date(Date.now() - 86_400_000);
certificate.validity.notAfter = new Date(Date.now() + 86_400_000);
const name = [{ name: 'commonName', value: 'localhost' }];
certificate.setSubject(name);
certificate.setIssuer(name);
certificate.setExtensions([
  { name: 'basicConstraints', cA: true },
  { name: 'subjectAltName', altNames: [{ type: 2, value: 'localhost' }] },
]);
certificate.sign(key, forge.md.sha256.create());
writeFileSync('key.pem', pem);
writeFileSync('cert.pem', forge.pki.certificateToPem(certificate));
JS

cat > server.mjs <<'JS'
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:tls';
const options = { key: readFileSync('key.pem'), cert: readFileSync('cert.pem') };
const server = createServer(options, (socket) => socket.on('error', () => {}).resume());
server.on('tlsClientError', () => {});
server.listen(0, '127.0.0.1', 1024, () => writeFileSync('port', String(server.address().port)));
JS

cat > clients.mjs <<'JS'
import { readFileSync } from 'node:fs';
import * as net from 'node:net';
import { Duplex } from 'node:stream';
import { connect } from 'node:tls';

const [AT_A_TIME, ALL, WORK_MS] = [64, 1500, 2];
const overStream = process.argv[2] === 'stream';
const to = { host: '127.0.0.1', port: Number(readFileSync('port', 'utf8')) };
const ca = readFileSync('cert.pem');
const waiting = new Map(); // number of a connection -> how many that began later were ready before it
const overtaken = [];
let begun = 0;

function stream() {
  const tcp = net.connect(to);
  const over = new Duplex({
    read() {},
    write: (chunk, encoding, done) => tcp.write(chunk, encoding, done),
    final: (done) => tcp.end(done),
    destroy(error, done) {
      tcp.destroy();
      done(error);
    },
  });
  tcp.on('data', (chunk) => over.push(chunk)).on('end', () => over.push(null));
  return over;
}

function work() {
  for (const end = performance.now() + WORK_MS; performance.now() < end; );
}

const connection = () =>
  new Promise((resolve, reject) => {
    const number = begun++;
    waiting.set(number, 0);
    const options = { ...(overStream ? { socket: stream() } : to), servername: 'localhost', ca };
    const socket = connect(options, () => {
      overtaken.push(waiting.get(number));
      waiting.delete(number);
      for (const [other, count] of waiting) if (other < number) waiting.set(other, count + 1);
      socket.destroy();
      work();
      resolve();
    });
    socket.on('error', reject);
  });

async function caller() {
  while (begun < ALL) await connection();
}
await Promise.all(Array.from({ length: AT_A_TIME }, caller));
console.log(Math.max(...overtaken));
JS

node certificate.cjs
node server.mjs &
server=$!
until [ -s port ]; do
  kill -0 "$server"
  sleep 0.1
done
echo "the most connections that overtook one, of 1,500, 64 at a time"
native=$(node_modules/.bin/bun clients.mjs native)
streamed=$(node_modules/.bin/bun clients.mjs stream)
echo "Bun 1.4.4, tls.connect           $native"
echo "Bun 1.4.4, tls.connect on stream $streamed"
echo "Node $(node --version), tls.connect      $(node clients.mjs native)"
if [ "$native" -gt 750 ] && [ "$streamed" -lt 200 ]; then
  echo "as stated: the newest first"
else
  echo "CHANGED: Bun no longer serves the newest first"
  exit 1
fi
