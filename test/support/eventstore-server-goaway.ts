// Leaves a client's GOAWAY out of what comes to the test server: Deno 2.9.6 frees the session in the callback that
// tells of the frame, nghttp2 goes on with what was freed, and the process aborts. A client that says it closes its
// connection next, and that says the same.

/** RFC 9113, 3.4: what every client begins with. */
const PREFACE_BYTES = 24;
/** RFC 9113, 4.1: length (3), type (1), flags (1), stream (4). */
const HEADER_BYTES = 9;
const GOAWAY = 7;

/** Of one connection: gets its bytes in order, in pieces of any size, and gives what is to be handed on. */
export function withoutGoaway(): (chunk: Buffer) => Buffer {
  let header = Buffer.alloc(0);
  let body = PREFACE_BYTES;
  let dropping = false;
  return (chunk) => {
    const kept: Buffer[] = [];
    for (let at = 0; at < chunk.length; ) {
      const inBody = body > 0;
      const piece = chunk.subarray(at, at + (inBody ? body : HEADER_BYTES - header.length));
      at += piece.length;
      if (inBody) {
        body -= piece.length;
        if (!dropping) kept.push(piece);
        continue;
      }
      header = Buffer.concat([header, piece]);
      if (header.length < HEADER_BYTES) continue;
      dropping = header[3] === GOAWAY;
      body = header.readUIntBE(0, 3);
      if (!dropping) kept.push(header);
      header = Buffer.alloc(0);
    }
    return Buffer.concat(kept);
  };
}
