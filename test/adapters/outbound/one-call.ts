// A process for one call: argv[2] is JSON {url, dns, caPem, timeoutMs}. Prints the report as JSON and must then end: a
// remaining timer or socket would keep it alive.
import { dnsResolver } from '#src/adapters/outbound/dns.ts';
import { outboundWith, requestTo } from './lab.ts';

const { url, dns, caPem, timeoutMs } = JSON.parse(process.argv[2] ?? '{}');
const outbound = outboundWith({ resolver: dnsResolver({ servers: [dns], maxInFlight: 8 }), caPem });
process.stdout.write(JSON.stringify(await outbound.send(requestTo(url, { timeoutMs }))));
