// SPDX-License-Identifier: MIT
// Prints JSON Schemas as zod writes them, one a line; schemas.py runs it with Node.js and zod 4.
import * as z from "zod";

const node = z.object({ v: z.number(), get kids() { return z.array(node); } });
const point = z.object({ x: z.number() });
const types = [
  z.email(), z.url(), z.uuid(), z.uuidv4(), z.guid(), z.cuid(), z.cuid2(), z.ulid(), z.xid(),
  z.ksuid(), z.nanoid(), z.base64(), z.base64url(), z.e164(), z.ipv4(), z.ipv6(), z.cidrv4(),
  z.cidrv6(), z.jwt(), z.hex(), z.mac(), z.iso.datetime(), z.iso.datetime({ offset: true }),
  z.iso.datetime({ local: true }), z.iso.date(), z.iso.time(), z.iso.time({ precision: 3 }),
  z.iso.duration(), z.int(), z.int32(), z.uint32(), z.float32(), z.float64(),
  z.number().positive(), z.number().nonnegative().max(1.5), z.number().multipleOf(0.01),
  z.number().int().multipleOf(5).min(0).max(100), z.number().min(0.5).max(1.5),
  z.string().lowercase(), z.string().uppercase(), z.string().startsWith("ab."),
  z.string().endsWith("z"), z.string().includes("mid"),
  z.string().regex(/^[a-z]+$/).min(3).max(10), z.email().max(40),
  z.string().regex(/^a/).regex(/z$/), z.string().min(2).max(5), z.string().trim().min(1),
  z.array(z.string()).nonempty(), z.tuple([z.string(), z.number()]),
  z.tuple([z.string()], z.number()), z.record(z.string(), z.number()),
  z.record(z.enum(["a", "b"]), z.number()), z.partialRecord(z.enum(["a", "b"]), z.number()),
  z.record(z.string().regex(/^[a-z]+$/), z.boolean()), z.record(z.uuid(), z.int()),
  z.intersection(point, z.object({ q: z.boolean() })),
  z.intersection(z.looseObject({ p: z.string() }), z.looseObject({ q: z.boolean() })),
  z.discriminatedUnion("t", [z.object({ t: z.literal("a"), x: z.number() }),
                             z.object({ t: z.literal("b"), y: z.string() })]),
  z.union([z.string(), z.number(), point]), z.xor([z.string(), z.number()]),
  z.object({ a: z.string().optional(), b: z.string().nullable(), c: z.string().nullish(),
             d: z.number().default(5) }),
  z.strictObject({ a: z.string() }), z.looseObject({ a: z.string() }), point.catchall(z.number()),
  z.literal([1, "a", true, null]), z.literal(5), z.object({ a: z.never().optional() }), z.any(),
  z.unknown(), z.null(), z.enum(["x", "y"]), z.templateLiteral(["a-", z.number(), "px"]), z.json(),
  node, point.readonly(), z.string().brand("b"), z.string().catch("x"),
  z.string().meta({ example: "x", title: "T", "x-order": 1, examples: ["a"] }),
];
for (const target of ["draft-2020-12", "draft-7", "openapi-3.0"]) {
  for (const type of types) {
    try {
      console.log(JSON.stringify(z.toJSONSchema(z.object({ a: type }), { target })));
    } catch (error) {
      if (target === "draft-2020-12") {
        throw error; // other forms lack some types
      }
    }
  }
}
