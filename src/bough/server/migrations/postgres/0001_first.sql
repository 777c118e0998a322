-- The first form of the store on PostgreSQL: the same tables as SQLite's, which say what they are
-- for, in a schema of their own. JSON is kept as bytes, as the journal is checked byte by byte.

CREATE TABLE journal (
    seq    bigint PRIMARY KEY,
    step   bigint NOT NULL,
    at     double precision NOT NULL,
    job    text,
    what   bytea NOT NULL,
    reason bytea
);
CREATE INDEX journal_by_job ON journal (job, seq) WHERE job IS NOT NULL;

CREATE TABLE steps (
    step    bigint PRIMARY KEY,
    at      double precision NOT NULL,
    seq     bigint NOT NULL,
    entries bigint NOT NULL,
    crc     bigint NOT NULL
);
CREATE INDEX steps_by_seq ON steps (seq);

CREATE TABLE dropped (
    "row"  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    seq    bigint,
    step   bigint,
    at     double precision,
    what   bytea,
    reason bytea,
    why    text NOT NULL
);

CREATE TABLE snapshots (
    seq  bigint PRIMARY KEY,
    data bytea NOT NULL,
    crc  bigint NOT NULL
);

CREATE TABLE conditions (
    "row" bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    seq   bigint NOT NULL,
    what  bytea NOT NULL
);

CREATE TABLE jobs (
    "row"          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id             text NOT NULL UNIQUE,
    number         bigint NOT NULL,
    "user"         text NOT NULL,
    queue          text NOT NULL,
    state          text NOT NULL,
    record         bytea NOT NULL,
    name           text NOT NULL,
    submitted      double precision NOT NULL,
    ended          double precision,
    device_seconds double precision NOT NULL
);
CREATE INDEX jobs_by_number ON jobs (number);
CREATE INDEX jobs_by_state ON jobs (state, "row");
CREATE INDEX jobs_by_user ON jobs ("user", state, "row", queue);
CREATE INDEX jobs_by_queue ON jobs (queue, state, "row");
CREATE INDEX jobs_by_name ON jobs (name, "user", "row");
CREATE INDEX jobs_by_end ON jobs (ended);
CREATE INDEX jobs_by_use ON jobs ("user", device_seconds);

CREATE TABLE recipes (
    id     text PRIMARY KEY,
    uid    bigint NOT NULL,
    spec   bytea NOT NULL,
    recipe bytea NOT NULL
);

CREATE TABLE keys (
    "user" text NOT NULL,
    key    text NOT NULL,
    id     text NOT NULL,
    PRIMARY KEY ("user", key)
);

CREATE TABLE accounts (
    id      text PRIMARY KEY,
    account bytea NOT NULL
);

CREATE TABLE settings (
    name  text PRIMARY KEY,
    value bytea NOT NULL
);

CREATE TABLE tokens (
    name    text PRIMARY KEY,
    hash    bytea NOT NULL UNIQUE,
    "user"  text NOT NULL,
    scopes  bytea NOT NULL,
    created double precision NOT NULL,
    expires double precision
);
