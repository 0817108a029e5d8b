// A TCP connection as a plain stream, for TLS on top of it. Given a socket of its own, Bun's TLS client shares the
// queue for handshakes that its servers use: five a turn of the event loop, the newest first, so that under load an
// old handshake never gets its turn and a good target looks like one that timed out. Over a stream it has no queue.
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';

/** Ends with the socket, and destroys it when it is destroyed. */
export function tcpStream(socket: Socket): Duplex {
  const stream = new Duplex({
    read() {
      socket.resume();
    },
    write(chunk, encoding, done) {
      socket.write(chunk, encoding, done);
    },
    final(done) {
      socket.end(done);
    },
    destroy(error, done) {
      socket.destroy();
      done(error);
    },
  });
  socket.on('data', (chunk) => {
    if (!stream.push(chunk)) socket.pause();
  });
  socket.once('end', () => stream.push(null));
  socket.once('close', () => stream.destroy());
  return stream;
}
