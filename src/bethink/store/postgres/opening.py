"""Prepare a database: schema, migrations, the serving role and row-level security."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from psycopg import sql

from bethink.core.named_tuple import NamedTuple
from bethink.errors import NotFound, SchemaTooNew, StoreBusy, StoreError, how_to_update
from bethink.store.postgres import distribution
from bethink.store.postgres.connections import ARRIVING, LEFT, PgConnections, space_id_of
from bethink.store.postgres.schema import SCHEMA, SPACE_SETTING, migrations, tables
from bethink.store.postgres.server import (
    INIT_REMEDY,
    PROPAGATE,
    Connection,
    Server,
    connect,
    is_distributed,
    needs_right,
    read_value,
    serving_role,
    translate_errors,
)
from bethink.store.url import shown_store

MIN_SERVER = 15
_LISTING_SETTING = "bethink.listing"
_MIGRATION_LOCK = 0x6265_7468_696E_6B00  # "bethink"
_OF_SPACE = f"space_id = nullif(current_setting('{SPACE_SETTING}', true), '')::bigint"
_LISTED = f"current_setting('{_LISTING_SETTING}', true) = 'on'"
_VERSION_TABLE = f"""
    CREATE TABLE IF NOT EXISTS {SCHEMA}.migration (
        version bigint PRIMARY KEY,
        applied_at timestamptz NOT NULL DEFAULT now()
    )
"""
_FIRST_META = (("journal", "0:"), ("entities", "0"), ("packed", "0:0"))


class StoreStatus(NamedTuple):
    """What a database has of Bethink: schema versions, the server's, and spaces.

    Of a distributed one also the servers that have shards, and those that do not answer: then
    the spaces cannot be counted.
    """

    url: str
    server: str
    schema: int
    known: int
    role: str
    serving: bool
    secured: bool
    spaces: int | None
    distributed: bool = False
    nodes: int = 0
    shards: int = 0
    unreachable: tuple[str, ...] = ()


def init_store(url: str) -> StoreStatus:
    """Create the schema, the serving role and all tables; known ones are migrated."""
    with translate_errors(shown_store(url)), connect(url) as connection:
        _require_version(connection)
        _require_encoding(connection)
        with connection.transaction():
            connection.execute(f"SELECT pg_advisory_xact_lock({_MIGRATION_LOCK})")
            _create_schema(connection, url)
            _create_role(connection, url)
            _migrate(connection, url)
    return store_status(url)


def _require_tables(connection: Connection, shown: str) -> int:
    """Return the version of the tables of a database; say how to create them if it has none."""
    if (found := schema_version(connection)) == 0:
        raise StoreError(f"{shown} has no tables of Bethink", remedy=INIT_REMEDY)
    return found


def migrate_store(url: str) -> StoreStatus:
    """Run the missing migrations, under a lock, in one transaction."""
    with translate_errors(shown_store(url)), connect(url) as connection:
        _require_tables(connection, shown_store(url))
        with connection.transaction():
            connection.execute(f"SELECT pg_advisory_xact_lock({_MIGRATION_LOCK})")
            _migrate(connection, url)
    return store_status(url)


def distribute_store(url: str, shards: int | None = None) -> StoreStatus:
    """Distribute the tables by space over the servers of a Citus cluster, in one transaction.

    What is distributed already is left as it is.
    """
    with translate_errors(shown_store(url)), connect(url) as connection:
        distribution.require_citus(connection, shown_store(url))
        require_supported(_require_tables(connection, shown_store(url)), shown_store(url))
        distribution.require_bypass(connection)
        distribution.require_login(connection)
        distribution.require_nodes(connection)
        with connection.transaction():
            connection.execute(f"SELECT pg_advisory_xact_lock({_MIGRATION_LOCK})")
            _migrate(connection, url)
            distribution.distribute(connection, shards)
        distribution.remove_local_rows(connection)
    return store_status(url)


def store_status(url: str) -> StoreStatus:
    """Return what a database has of Bethink."""
    with translate_errors(shown_store(url)), connect(url) as connection:
        version = read_value(connection, "SHOW server_version")
        schema = schema_version(connection)
        role, serving = serving_role(connection), _may_serve(connection)
        secured = read_value(
            connection,
            "SELECT bool_and(c.relrowsecurity AND c.relforcerowsecurity)"
            " FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace"
            " WHERE n.nspname = %s AND c.relkind IN ('r', 'p')",
            (SCHEMA,),
        )
        over = distribution.distribution_of(connection) if schema and serving else None
        countable = over is None or not over.unreachable
        spaces = len(_list_spaces(connection)) if schema and serving and countable else 0
    return StoreStatus(
        url=shown_store(url),
        server=str(version or ""),
        schema=schema,
        known=migrations()[-1].version,
        role=role,
        serving=serving,
        secured=bool(secured) and (over is None or over.secured),
        spaces=spaces if countable else None,
        distributed=over is not None,
        nodes=over.nodes if over else 0,
        shards=over.shards if over else 0,
        unreachable=over.unreachable if over else (),
    )


def schema_version(connection: Connection) -> int:
    """Return the schema version of a database; 0 without one."""
    if read_value(connection, f"SELECT to_regclass('{SCHEMA}.migration')") is None:
        return 0
    return int(read_value(connection, f"SELECT max(version) FROM {SCHEMA}.migration") or 0)


def _require_version(connection: Connection) -> None:
    number = connection.info.server_version
    if number < MIN_SERVER * 10_000:
        raise StoreError(
            f"the server is PostgreSQL {number // 10_000}, but {MIN_SERVER} or later is needed",
            remedy="upgrade the server",
        )


def _require_encoding(connection: Connection) -> None:
    """Refuse a database whose encoding has not every character."""
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise StoreError(
            f"the database {connection.info.dbname} has the encoding {encoding}, not UTF8",
            remedy="CREATE DATABASE memories ENCODING 'UTF8' TEMPLATE template0;",
        )


def _create_schema(connection: Connection, url: str) -> None:
    user, database = connection.info.user, connection.info.dbname
    problem = f"the role {user} may not create the schema {SCHEMA} in {shown_store(url)}"
    with needs_right(connection, problem, f'GRANT CREATE ON DATABASE "{database}" TO "{user}";'):
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
        connection.execute(_VERSION_TABLE)


def _create_role(connection: Connection, url: str) -> None:
    """Create the role that serves, where it is missing, and join it."""
    role, user = serving_role(connection), sql.Identifier(connection.info.user).as_string(None)
    if read_value(connection, "SELECT to_regrole(%s)", (role,)) is None:
        create = f"CREATE ROLE {role} NOLOGIN"
        problem = f"the role {user} may not create the role {role} in {shown_store(url)}"
        with needs_right(connection, problem, f"{create}; GRANT {role} TO {user};"):
            connection.execute(create)
    if not _may_serve(connection):
        options = " WITH INHERIT TRUE, SET TRUE" if _has_set_option(connection) else ""
        grant = f"GRANT {role} TO {user}{options}"
        problem = f"the role {user} is not a member of {role}"
        with needs_right(connection, problem, f"{grant};"):
            connection.execute(grant)


def _has_set_option(connection: Connection) -> bool:
    """Whether a member may be one that cannot set the role, as who created it is at first."""
    return connection.info.server_version >= 160_000


def _may_serve(connection: Connection) -> bool:
    """Whether the role that connected can set the one that serves."""
    right = "SET" if _has_set_option(connection) else "MEMBER"
    sql = "SELECT coalesce(pg_has_role(current_user, to_regrole(%s), %s), false)"
    return bool(read_value(connection, sql, (serving_role(connection), right)))


def _migrate(connection: Connection, url: str) -> None:
    """Run the missing migrations in the caller's transaction, and secure every table."""
    found = schema_version(connection)
    require_supported(found, shown_store(url))
    if 0 < found < migrations()[-1].version:
        distribution.hold_clients(connection)
    for step in migrations():
        if step.version > found:
            if is_distributed(connection):
                distribution.run_step(connection, step.sql)
            else:
                connection.execute(step.sql.encode())
            connection.execute(f"INSERT INTO {SCHEMA}.migration VALUES ({step.version:d})")
    _secure(connection)
    _grant(connection)


def require_supported(found: int, name: str) -> None:
    """Raise an error for a schema that is missing, too old or too new."""
    known = migrations()[-1].version
    if found > known:
        raise SchemaTooNew(
            f"{name} was changed by a newer Bethink (schema {found}, this one knows {known})",
            remedy=how_to_update(),
        )


def _secure(connection: Connection) -> None:
    """Force row-level security on every table.

    Tables that have it are left alone: an exclusive lock would wait for all that use them.
    """
    names = connection.execute(
        "SELECT c.relname FROM pg_class AS c WHERE c.relnamespace = to_regnamespace(%s)"
        " AND c.relkind = 'r' AND NOT (c.relrowsecurity AND c.relforcerowsecurity AND EXISTS ("
        " SELECT 1 FROM pg_policy AS p WHERE p.polrelid = c.oid AND p.polname = 'of_space'))"
        " ORDER BY 1",
        (SCHEMA,),
    ).fetchall()
    for (name,) in names:
        table = f"{SCHEMA}.{name}"
        connection.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        connection.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
        connection.execute(f"DROP POLICY IF EXISTS of_space ON {table}")
        if name == "migration":
            connection.execute(f"CREATE POLICY of_space ON {table} USING (true)")
            continue
        connection.execute(
            f"CREATE POLICY of_space ON {table} USING ({_OF_SPACE}) WITH CHECK ({_OF_SPACE})"
        )
        if name == "space":
            connection.execute(f"DROP POLICY IF EXISTS listing ON {table}")
            connection.execute(f"CREATE POLICY listing ON {table} FOR SELECT USING ({_LISTED})")


def _grant(connection: Connection) -> None:
    """Let the serving role use the tables, also those that came without rights from a dump."""
    role, rights = serving_role(connection), "SELECT, INSERT, UPDATE, DELETE"
    if connection.info.server_version >= 170_000:
        rights += ", MAINTAIN"  # so that what is erased can be vacuumed away at once
    connection.execute(f"GRANT USAGE ON SCHEMA {SCHEMA} TO {role}")
    connection.execute(f"GRANT SELECT ON {SCHEMA}.migration TO {role}")
    names = "SELECT tablename FROM pg_tables WHERE schemaname = %s AND tablename <> 'migration'"
    for (name,) in connection.execute(names, (SCHEMA,)).fetchall():
        connection.execute(f"GRANT {rights} ON {SCHEMA}.{name} TO {role}")


def list_spaces(url: str) -> list[str]:
    """Return the names of all spaces of a database."""
    with translate_errors(shown_store(url)), connect(url) as connection:
        _require_tables(connection, shown_store(url))
        return _list_spaces(connection)


def _list_spaces(connection: Connection) -> list[str]:
    with connection.transaction():
        connection.execute(PROPAGATE)
        connection.execute(f"SET LOCAL ROLE {serving_role(connection)}")
        connection.execute(f"SET LOCAL {_LISTING_SETTING} = 'on'")
        rows = connection.execute(f"SELECT name FROM {SCHEMA}.space ORDER BY name").fetchall()
    return [name for (name,) in rows]


def has_space(url: str, space: str) -> bool:
    """Whether a database has a space of this name."""
    return known_name(url, space) == space


def known_name(url: str, space: str) -> str | None:
    """Return the name in the row of a space, which also tells whether it is being moved."""
    with translate_errors(shown_store(url)), connect(url) as connection:
        _require_tables(connection, shown_store(url))
        with _serving(connection, space_id_of(space)):
            return _name_of(connection, space_id_of(space))


def remove_space(url: str, space: str) -> None:
    """Delete all rows of a space, once no one writes it any more."""
    space_id = space_id_of(space.removesuffix(ARRIVING).removesuffix(LEFT))
    of_space = f"WHERE space_id = {space_id:d}"
    with (
        translate_errors(shown_store(url)),
        connect(url) as connection,
        _serving(connection, space_id),
    ):
        connection.execute(f"SELECT 1 FROM {SCHEMA}.space {of_space} FOR UPDATE")
        # What refers to others was created after them.
        for name in reversed(tables()):
            connection.execute(f"DELETE FROM {SCHEMA}.{name} {of_space}")


@contextmanager
def _serving(connection: Connection, space_id: int) -> Iterator[None]:
    """Open a transaction of the serving role in a space."""
    with connection.transaction():
        connection.execute(PROPAGATE)
        connection.execute(f"SET LOCAL ROLE {serving_role(connection)}")
        connection.execute(f"SET LOCAL {SPACE_SETTING} = '{space_id:d}'")
        yield


def _name_of(connection: Connection, space_id: int) -> str | None:
    sql = f"SELECT name FROM {SCHEMA}.space WHERE space_id = {space_id:d}"
    name = read_value(connection, sql)
    return None if name is None else str(name)


def open_space(url: str, space: str, *, create: bool, state: str = "") -> PgConnections:
    """Open a space of a database, creating it if ``create``; only a move gives a state."""
    server = Server.use(url)
    connections = PgConnections(server, space, state=state)
    with ExitStack() as unless_opened, translate_errors(connections.name):
        unless_opened.callback(connections.close)
        _require_space(connections, create=create)
        unless_opened.pop_all()
    return connections


def _require_space(connections: PgConnections, *, create: bool) -> None:
    server, space_id = connections.server, connections.space_id
    with server.connection() as connection:
        found = _require_tables(connection, server.name)
        require_supported(found, server.name)
        if found < migrations()[-1].version:
            raise StoreError(
                f"{server.name} has schema {found}, this version needs {migrations()[-1].version}",
                remedy="bethink store migrate URL, as the owner",
            )
        with _serving(connection, space_id):
            known = _name_of(connection, space_id)
            if known is None and create:
                _create_space(connection, connections.row_name, space_id)
                known = connections.row_name
    if known is None:
        raise NotFound(f"{connections.name} does not exist", remedy="bethink spaces lists them")
    if known != connections.row_name:
        raise _other_name_error(connections, known)


def _other_name_error(connections: PgConnections, known: str) -> StoreError:
    """Say why the row of a space has another name."""
    if known == connections.space + ARRIVING:
        return StoreBusy(
            f"{connections.name} is being moved there",
            remedy="wait for it, or run bethink move again if it was interrupted",
        )
    if known == connections.space + LEFT:
        return StoreError(
            f"{connections.name} was moved away",
            remedy=f"name its store, or remove what is left: bethink spaces remove '{known}'",
        )
    return StoreError(
        f"the name {connections.space} has the id of the space {known}",
        remedy="choose another name",
    )


def _create_space(connection: Connection, name: str, space_id: int) -> None:
    now = int(time.time() * 1000)
    connection.execute(
        f"INSERT INTO {SCHEMA}.space (space_id, name, created_at) VALUES (%s, %s, %s)"
        " ON CONFLICT DO NOTHING",
        (space_id, name, now),
    )
    # The transactions are counted on from the time, so that no cache of an earlier space of
    # this name is taken for one of the new.
    for key, value in (("generation", str(now)), *_FIRST_META):
        connection.execute(
            f"INSERT INTO {SCHEMA}.meta (space_id, name, value) VALUES (%s, %s, %s)"
            " ON CONFLICT DO NOTHING",
            (space_id, key, value),
        )
