"""A database distributed over several servers by Citus: each space lies on one of them.

All tables are distributed by the space's id and co-located, so that a statement for one space
is one task on one server. A coordinator sends it there only if it can tell: an insert of rows
that are computed takes the id from the row of the space (`bindings.for_one_shard`).
Row-level security is forced on every shard, and a shard's server learns the space from the
coordinator (`server.PROPAGATE`).
"""

from __future__ import annotations

import re

from bethink.core.named_tuple import NamedTuple
from bethink.errors import StoreError
from bethink.store.postgres.schema import SCHEMA, SPACE_ID, tables
from bethink.store.postgres.server import (
    Connection,
    is_distributed,
    needs_right,
    read_value,
    serving_role,
)

MIN_CITUS = 12
_MIN_MOVING = 160_000  # the version of the server
_FIRST = "space"  # the table that all others are co-located with
_EVERYWHERE = "migration"  # the table that every server has whole
_SEQUENTIAL = "SET LOCAL citus.multi_shard_modify_mode = 'sequential'"
_ADD_NODE = "SELECT citus_add_node('worker.example', 5432);"
_FOREIGN_KEY = re.compile(r",\n    (FOREIGN KEY [^\n]*?)(?=,?\n)")
_CREATE_TABLE = re.compile(rf"CREATE TABLE {SCHEMA}\.(\w+) \(")


class Distribution(NamedTuple):
    """Over what a database is distributed: servers, those that do not answer, and shards."""

    nodes: int
    unreachable: tuple[str, ...]
    shards: int
    secured: bool


def distribution_of(connection: Connection) -> Distribution | None:
    """Return over what a database is distributed; None for one that is not."""
    if not is_distributed(connection):
        return None
    shards = "SELECT count(*) FROM pg_dist_shard WHERE logicalrelid = to_regclass(%s)"
    open_tables = (
        "SELECT count(*) FROM pg_class AS c WHERE c.relkind = 'r'"
        f" AND c.relnamespace = to_regnamespace('{SCHEMA}')"
        " AND NOT (c.relrowsecurity AND c.relforcerowsecurity)"
    )
    answers = _on_every_node(connection, open_tables)
    return Distribution(
        nodes=len(answers),
        unreachable=tuple(name for name, count in answers.items() if count is None),
        shards=int(read_value(connection, shards, (f"{SCHEMA}.{_FIRST}",)) or 0),
        secured=all(count in {None, "0"} for count in answers.values()),
    )


def _on_every_node(connection: Connection, sql: str) -> dict[str, str | None]:
    """Return what a query of one value gives on each server with shards; None where it fails."""
    nodes = connection.execute(
        "SELECT nodename, nodeport FROM pg_dist_node"
        " WHERE shouldhaveshards AND isactive AND noderole = 'primary' ORDER BY nodeid"
    ).fetchall()
    found: dict[str, str | None] = {}
    role = serving_role(connection)
    for name, port in nodes:
        with connection.transaction():
            connection.execute(f"SET LOCAL ROLE {role}")
            found[f"{name}:{port}"] = _run_on(connection, name, port, sql)
    return found


def vacuum_shards(connection: Connection, space_id: int, options: str) -> bool:
    """Vacuum the shards that hold a space, on their server; return whether it was done.

    As the role that connected. A vacuum of the tables themselves would do all shards.
    """
    found = connection.execute(
        "SELECT n.nodename, n.nodeport, string_agg(shard_name(s.logicalrelid, s.shardid), ', ')"
        " FROM pg_dist_shard AS s JOIN pg_dist_placement AS p ON p.shardid = s.shardid"
        " JOIN pg_dist_node AS n ON n.groupid = p.groupid AND n.noderole = 'primary'"
        " JOIN pg_class AS c ON c.oid = s.logicalrelid"
        " WHERE c.relnamespace = to_regnamespace(%s) AND s.shardminvalue IS NOT NULL"
        " AND s.shardid = get_shard_id_for_distribution_column(s.logicalrelid, %s::bigint)"
        " GROUP BY 1, 2",
        (SCHEMA, space_id),
    ).fetchall()
    return all(
        _run_on(connection, name, port, f"VACUUM ({options}) {shards}") is not None
        for name, port, shards in found
    )


def _run_on(connection: Connection, name: str, port: int, sql: str) -> str | None:
    """Return the one value that a statement gives on a server; None where it fails."""
    row = connection.execute(
        "SELECT success, result FROM master_run_on_worker(ARRAY[%s::text], ARRAY[%s::int],"
        " ARRAY[%s::text], false)",
        (name, port, sql),
    ).fetchone()
    return str(row[1]) if row and row[0] else None


def distribute(connection: Connection, shards: int | None) -> None:
    """Distribute the tables that are not yet, in the caller's transaction.

    ``shards`` is the number of shards; None is what the server is set to.
    """
    known = _distributed_tables(connection)
    missing = [name for name in tables() if name not in known]
    if _EVERYWHERE not in known:
        missing.append(_EVERYWHERE)
    if not missing:
        return
    connection.execute(_SEQUENTIAL)
    before = {}
    for name in missing:
        # What the owner cannot see would not be copied.
        connection.execute(f"ALTER TABLE {SCHEMA}.{name} NO FORCE ROW LEVEL SECURITY")
        before[name] = read_value(connection, f"SELECT count(*) FROM {SCHEMA}.{name}")
    for name in missing:
        _distribute_table(connection, name, shards)
    for name in missing:
        if read_value(connection, f"SELECT count(*) FROM {SCHEMA}.{name}") != before[name]:
            raise StoreError(f"not all rows of {name} were distributed; nothing was changed")
        connection.execute(f"ALTER TABLE {SCHEMA}.{name} FORCE ROW LEVEL SECURITY")


def _distribute_table(connection: Connection, name: str, shards: int | None) -> None:
    table = f"{SCHEMA}.{name}"
    if name == _EVERYWHERE:
        connection.execute("SELECT create_reference_table(%s)", (table,))
        return
    options = ["colocate_with => %s"]
    if name == _FIRST and shards is not None:
        options.append(f"shard_count => {shards:d}")
    connection.execute(
        f"SELECT create_distributed_table(%s, '{SPACE_ID}', {', '.join(options)})",
        (table, "none" if name == _FIRST else f"{SCHEMA}.{_FIRST}"),
    )


def hold_clients(connection: Connection) -> None:
    """Wait for the open transactions of clients; others begin when the caller's has ended.

    Each of them begins with the row of its space or with its generation. So none has a table
    that the caller waits for, and waits for one that the caller has.
    """
    connection.execute(f"LOCK TABLE {SCHEMA}.{_FIRST}, {SCHEMA}.meta IN ACCESS EXCLUSIVE MODE")


def remove_local_rows(connection: Connection) -> None:
    """Remove what the coordinator still has of rows that were copied to their shards."""
    left = connection.execute(
        "SELECT logicalrelid::regclass::text FROM pg_dist_partition"
        " WHERE logicalrelid::regclass::text LIKE %s AND partmethod = 'h'"
        " AND pg_relation_size(logicalrelid) > 0",
        (f"{SCHEMA}.%",),
    ).fetchall()
    if left:
        with connection.transaction():
            hold_clients(connection)
            for (table,) in left:
                truncate = "SELECT truncate_local_data_after_distributing_table(%s)"
                connection.execute(truncate, (table,))


def _distributed_tables(connection: Connection) -> set[str]:
    rows = connection.execute(
        "SELECT c.relname FROM pg_dist_partition AS p JOIN pg_class AS c ON c.oid = p.logicalrelid"
        " WHERE c.relnamespace = to_regnamespace(%s)",
        (SCHEMA,),
    ).fetchall()
    return {name for (name,) in rows}


def require_citus(connection: Connection, name: str) -> None:
    """Raise an error where a database cannot be distributed: what is missing, and the SQL."""
    sql = "SELECT extversion FROM pg_extension WHERE extname = 'citus'"
    version = read_value(connection, sql)
    if version is None:
        raise StoreError(
            f"{name} has no extension citus",
            remedy="as a superuser, on every server: CREATE EXTENSION citus;"
            f" then on the coordinator: {_ADD_NODE}",
        )
    if int(str(version).split(".")[0].split("-")[0]) < MIN_CITUS:
        raise StoreError(
            f"{name} has Citus {version}, but {MIN_CITUS} or later is needed",
            remedy="install it on every server, then: ALTER EXTENSION citus UPDATE;",
        )
    state = connection.execute(
        "SELECT citus_is_coordinator(), (SELECT count(*) FROM pg_dist_node"
        " WHERE shouldhaveshards AND isactive AND noderole = 'primary')"
    ).fetchone()
    if state is None or not state[0]:
        raise StoreError(f"{name} is not the coordinator", remedy="name the coordinator's URL")
    if not state[1]:
        raise StoreError(
            f"{name} has no server that may have shards", remedy=f"as a superuser: {_ADD_NODE}"
        )


def require_login(connection: Connection) -> None:
    """Let the serving role log in: as it the coordinator connects to the other servers."""
    role = serving_role(connection)
    sql = "SELECT rolcanlogin FROM pg_roles WHERE oid = %s::regrole"
    if read_value(connection, sql, (role,)) is False:
        let = f"ALTER ROLE {role} LOGIN"
        problem = f"the role {role} may not log in, as the coordinator must on each server"
        with needs_right(connection, problem, f"{let};"):
            connection.execute(let)


def require_bypass(connection: Connection) -> None:
    """Raise an error where the owner is held by row-level security, which it forces itself.

    A shard is moved by logical replication, which writes as the owner of the table; before
    PostgreSQL 16 as a role that Citus makes for it, which nothing lets through.
    """
    if connection.info.server_version < _MIN_MOVING and not is_distributed(connection):
        raise StoreError(
            "PostgreSQL 15 would never end moving a shard while it is written",
            remedy="upgrade the servers to PostgreSQL 16, or stay with one server",
        )
    owner = read_value(
        connection,
        "SELECT r.rolname FROM pg_class AS c JOIN pg_roles AS r ON r.oid = c.relowner"
        " WHERE c.oid = to_regclass(%s) AND NOT (r.rolsuper OR r.rolbypassrls)",
        (f"{SCHEMA}.{_FIRST}",),
    )
    if owner is not None:
        raise StoreError(
            f"the owner {owner} does not bypass row-level security, as it must to move shards",
            remedy=f'as a superuser: ALTER ROLE "{owner}" BYPASSRLS;',
        )


def require_nodes(connection: Connection) -> None:
    """Raise an error where a server does not let the coordinator in as the serving role."""
    away = [name for name, one in _on_every_node(connection, "SELECT 1").items() if one is None]
    if away:
        role = serving_role(connection)
        raise StoreError(
            f"the coordinator cannot connect to {', '.join(away)} as {role}",
            # A role that is older than the extension is not known to the others.
            remedy="there, as a superuser: SET citus.enable_ddl_propagation = off;"
            f" CREATE ROLE {role} LOGIN; or ALTER ROLE {role} LOGIN; and allow it in pg_hba.conf,"
            " with its password in the coordinator's .pgpass or pg_dist_authinfo",
        )


def run_step(connection: Connection, step: str) -> None:
    """Run a migration of a distributed database, one statement at a time.

    A new table is distributed before it refers to others.
    """
    connection.execute(_SEQUENTIAL)
    for statement in step.split(";\n"):
        match = _CREATE_TABLE.search(statement)
        if match is None:
            if statement.strip():
                connection.execute(statement.encode())
            continue
        keys = _FOREIGN_KEY.findall(statement + "\n")
        connection.execute(_FOREIGN_KEY.sub("", statement + "\n").encode())
        _distribute_table(connection, match[1], None)
        for key in keys:
            connection.execute(f"ALTER TABLE {SCHEMA}.{match[1]} ADD {key}".encode())
