#!/bin/sh
# Bun 1.4.4, node:dns/promises, found 2026-11-28.
#
# The good guess: `new Resolver({ timeout: 300, tries: 4 })` sends a lost packet again after 300 ms. Deno 2.9.6 does; Node 20 takes
# up to 600 ms.
# What happens: Bun looks at the timers of its DNS queries once a second, counted from the query. A packet that has waited for 300 or
# 900 ms is sent again after 1.0 s, one of 1,500 ms after 2.0 s; `tries: 1` fails after 1.0 s whatever `timeout` is below that.
# Why it matters: with a time limit of 2 s for a look-up, the usual 1,500 ms never send a lost packet again in time, so that one lost
# packet is a failed look-up. Choose packet times below 1,000 ms, and expect no repeat before 1.0 s.
#
# Runs without the product, on a DNS server of its own on 127.0.0.1. Exits 0 if Bun behaves as stated, 1 if it no longer does.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
printf '{"private":true}' > package.json
npm install --silent --no-audit --no-fund bun@1.4.4

cat > repeat.mjs <<'JS'
import { createSocket } from 'node:dgram';
import { Resolver } from 'node:dns/promises';

let begun = 0;
let arrivals = [];
const server = createSocket('udp4');
server.on('message', (query, from) => {
  arrivals.push(performance.now() - begun);
  if (arrivals.length === 1) return; // the first packet is lost
  // The question again, as a response with one A record: 192.0.2.1, TTL 0.
  const end = query.indexOf(0, 12) + 5;
  const record = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 192, 0, 2, 1]);
  const response = Buffer.concat([query.subarray(0, end), record]);
  response.writeUInt16BE(0x8180, 2);
  response.writeUInt16BE(1, 6);
  response.writeUInt32BE(0, 8);
  server.send(response, from.port, from.address);
});
await new Promise((resolve) => server.bind(0, '127.0.0.1', resolve));
const repeats = [];
for (const timeout of [300, 900, 1500]) {
  arrivals = [];
  begun = performance.now();
  const resolver = new Resolver({ timeout, tries: 4 });
  resolver.setServers([`127.0.0.1:${server.address().port}`]);
  await resolver.resolve4('a.example.');
  repeats.push(Math.round(arrivals[1] - arrivals[0]));
}
server.close();
console.log(JSON.stringify(repeats));
JS

echo "ms until a lost packet is sent again, for timeout 300, 900, 1500"
seen=$(node_modules/.bin/bun repeat.mjs)
echo "Bun 1.4.4  $seen"
echo "Node $(node --version)  $(node repeat.mjs)"
node -e '
  const [a, b, c] = JSON.parse(process.argv[1]);
  const asStated = a >= 950 && a < 1900 && b >= 950 && b < 1900 && c >= 1950;
  console.log(asStated ? "as stated: once a second" : "CHANGED: Bun no longer waits for its next second");
  process.exit(asStated ? 0 : 1);
' "$seen"
