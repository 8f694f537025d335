/** The journal's file format: what the tables hold, and how an older file becomes a current one. */
import type { DatabaseSync } from 'node:sqlite'
import { JournalTooNew, JournalUnavailable } from './journal.ts'

/** One step of the format. Steps run in order, all in one transaction. */
export interface Migration {
  /** `PRAGMA user_version` after this step. Consecutive from 1. */
  readonly version: number
  readonly why: string
  /** Statements, separated by semicolons. `entry_checksum(position, at, scope, record)` can be called. */
  readonly sql: string
}

/** "ROWY": marks the file as a journal, so that another program's database is never taken for one. */
export const applicationId = 0x524f5759

export const migrations: ReadonlyArray<Migration> = [
  {
    version: 1,
    why: 'entries, checkpoints in parts, retention marks, the lease of the one writer',
    sql: `
      create table entries (
        position integer primary key,
        at real not null,
        scope text not null,
        record text not null,
        checksum integer not null
      ) strict;
      create table checkpoints (
        scope text not null,
        position integer not null,
        at real not null,
        parts integer not null,
        checksum integer not null,
        primary key (scope, position)
      ) strict, without rowid;
      create table checkpoint_parts (
        scope text not null,
        position integer not null,
        part integer not null,
        text text not null,
        primary key (scope, position, part)
      ) strict;
      -- Up to position 'through' entries may have been dropped; exactly 'kept' of them are still here.
      create table retention (
        id integer primary key check (id = 1),
        through integer not null,
        kept integer not null
      ) strict;
      insert into retention values (1, 0, 0);
      create table lease (
        id integer primary key check (id = 1),
        pid integer not null,
        host text not null,
        started text not null,
        token text not null,
        expires_at_ms real not null
      ) strict;
    `,
  },
  {
    version: 2,
    why: 'scopes rest, are forgotten, and are found by name; whose lease it is in a container',
    sql: `
      -- 1: nothing in the scope waits, runs or is due, so that a host need not load it to begin.
      alter table checkpoints add column resting integer not null default 0;
      create index checkpoints_by_position on checkpoints (position);
      create index checkpoints_awake on checkpoints (scope, position) where resting = 0;
      -- Nothing up to 'position' of the scope is its history any more; retention removes the rows.
      create table forgotten (
        scope text not null primary key,
        position integer not null
      ) strict, without rowid;
      -- Every entry up to 'through' has a checkpoint of its scope that stands for it.
      create table covered (
        id integer primary key check (id = 1),
        through integer not null
      ) strict;
      insert into covered values (1, 0);
      alter table lease add column boot text not null default '';
      alter table lease add column namespace text not null default '';
    `,
  },
]

/** The version this release writes, and the newest it reads. */
export const schemaVersion = migrations.length

/**
 * The file's schema version; 0 when it is empty. Throws `JournalTooNew`, and `JournalUnavailable`
 * when the file is a database of another program.
 */
export const readVersion = (db: DatabaseSync, path: string, supported = schemaVersion): number => {
  const application = pragmaNumber(db, 'application_id')
  const version = pragmaNumber(db, 'user_version')
  if (application === applicationId) {
    if (version > supported) throw new JournalTooNew(path, version, supported)
    return version
  }
  const { tables } = db.prepare('select count(*) as tables from sqlite_schema').get() as { tables: number }
  if (application !== 0 || version !== 0 || tables > 0) {
    throw new JournalUnavailable(
      path,
      "is another program's SQLite database",
      'pass another path; this file is left as it is',
    )
  }
  return 0
}

/**
 * Brings the file to the newest of `steps` inside the caller's transaction, and answers the
 * version it had before. A step that throws leaves the file as it was once the caller rolls back.
 */
export const migrate = (db: DatabaseSync, path: string, steps = migrations): number => {
  const before = readVersion(db, path, steps.length)
  for (const step of steps.slice(before)) {
    db.exec(step.sql)
    db.exec(`pragma user_version = ${step.version}`)
  }
  if (before === 0) db.exec(`pragma application_id = ${applicationId}`)
  return before
}

const pragmaNumber = (db: DatabaseSync, name: 'application_id' | 'user_version'): number => {
  const row = db.prepare(`pragma ${name}`).get() as Record<string, number>
  return row[name]!
}
