import * as z from 'zod';

/** A field of a package: a member of its entry, a column of datasets, and a field of the indices (`mappings/`). */
type Field = FieldType & {
  /** Schema of the member in responses. The field is optional if its schema is optional. */
  schema: z.ZodType;
  /** Name of the column, if it differs from the name of the field. */
  column?: string;
  /**
   * Default of an optional field. If some packages of a list have a value, the others get the default. Without a
   * default, the entries of the others lack the member.
   */
  default?: number;
  /** Whether a package counts as unchanged if only this field differs. `/changes` and its indices omit the field. */
  isVolatile?: true;
};

/**
 * A whole number, a text with a maximum length in UTF-8 bytes, or prose, which `lists/formats/prose` cleans instead of
 * rejecting it. An empty value counts as 0 in a number, and as no value in an optional text and in prose.
 */
type FieldType = { type: 'number' } | { type: 'prose' } | { type: 'text'; maxBytes: number };

/** A snapshot has an optional field if at least one package of its list has a value. */
export const FIELDS = {
  /** In a list without numbers, the position of the package. Comparisons of snapshots ignore positions. */
  no: { type: 'number', column: 'package_no', schema: z.int().min(1) },
  name: { type: 'text', maxBytes: 512, schema: z.string().min(1) },
  version: { type: 'text', maxBytes: 256, schema: z.string().min(1) },
  /** The length is limited because a page of changes contains up to 1,000 URLs. */
  url: {
    type: 'text',
    maxBytes: 2048,
    // Not `format: uri`: browsers accept URLs (WHATWG) with characters that this format forbids.
    schema: z.string().regex(/^[Hh][Tt][Tt][Pp][Ss]?:\/\//),
  },
  /** Only shown. Its text for Kibana is in `_source`. */
  description: {
    type: 'prose',
    schema: z
      .string()
      .min(1)
      .optional()
      .meta({ description: 'A line of up to 300 characters; only if the package has one.' }),
    isVolatile: true,
  },
  weight: {
    type: 'number',
    schema: z
      .int()
      .min(0)
      .optional()
      .meta({ description: 'Such as downloads; only if the dataset has weights.' }),
    default: 0,
    isVolatile: true,
  },
} as const satisfies Record<string, Field>;

type FieldName = keyof typeof FIELDS;
type Schemas = { [Name in FieldName]: (typeof FIELDS)[Name]['schema'] };
type VolatileField = {
  [Name in FieldName]: (typeof FIELDS)[Name] extends { isVolatile: true } ? Name : never;
}[FieldName];
export type OptionalField = {
  [Name in FieldName]: Schemas[Name] extends z.ZodOptional ? Name : never;
}[FieldName];

/** A package as the API returns it, without `rank`. */
export type PackageEntry = z.infer<z.ZodObject<Schemas>>;

const FIELD_NAMES = Object.keys(FIELDS) as FieldName[];

export const COMPARED_FIELDS = FIELD_NAMES.filter((name) => !isVolatile(name));

/**
 * The optional fields, in the order of an entry's members. In an entry, they follow the required fields. Volatile
 * fields are last, so a comparison can cut off the end of an entry.
 */
export const OPTIONAL_FIELDS = [...COMPARED_FIELDS, ...FIELD_NAMES.filter(isVolatile)].filter(
  (name): name is OptionalField => FIELDS[name].schema instanceof z.ZodOptional,
);

export const ENTRY_SCHEMAS = recordOf(FIELD_NAMES, (name) => FIELDS[name].schema) as Schemas;

export function fieldOf(name: FieldName): Field {
  return FIELDS[name];
}

export function isVolatile(name: FieldName): boolean {
  return fieldOf(name).isVolatile === true;
}

/** The name of a field in a dataset: of a column in CSV, of a member in JSON lines. */
export function columnOf(name: FieldName): string {
  return fieldOf(name).column ?? name;
}

export function comparedMembers<T extends PackageEntry | Schemas>(members: T): Omit<T, VolatileField> {
  return recordOf(COMPARED_FIELDS, (name) => members[name]) as Omit<T, VolatileField>;
}

/** Sets the optional fields that have a value. @param item must already have its other members. */
export function withOptional<T extends Partial<Record<OptionalField, unknown>>>(
  item: T,
  valueOf: (field: OptionalField, index: number) => unknown,
): T {
  const members: Partial<Record<OptionalField, unknown>> = item;
  OPTIONAL_FIELDS.forEach((field, i) => {
    const value = valueOf(field, i);
    if (value !== undefined) members[field] = value;
  });
  return item;
}

function recordOf<T>(names: readonly FieldName[], valueOf: (name: FieldName) => T): Record<string, T> {
  return Object.fromEntries(names.map((name) => [name, valueOf(name)]));
}
