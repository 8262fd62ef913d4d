// Written by tools/ui.py from the OpenAPI document; do not edit.

export interface Operations {
  "POST /v1/recall": {
    arguments: {
      query?: string | null;
      entity?: string | null;
      kind?: string | null;
      layer?: string | null;
      band?: "hot" | "warm" | "cold" | "frozen" | null;
      topic?: string | null;
      tag?: string | null;
      user?: string | null;
      since?: string | null;
      until?: string | null;
      as_of?: string | null;
      k?: number | null;
      episode_k?: number | null;
      max_tokens?: number | null;
      offset?: number | null;
      cursor?: string | null;
      mark_accessed?: boolean | null;
      profile?: string | null;
      whole?: boolean | null;
      min_confidence?: number | null;
      min_relevance?: number | null;
      turns_before?: string[] | null;
      own_session?: string | null;
      include_superseded?: boolean | null;
    };
    answer: {
      status: "found" | "unsure" | "nothing_matched" | "nothing_stored";
      reason: string;
      confidence: number;
      notice: string;
      memories: ({
        audience?: string;
        id: string;
        text: string;
        kind: string;
        level: string;
        topic: string | null;
        when: string;
        trust: number;
        source: string;
        speaker: string | null;
        status: string;
        pinned: boolean;
        flags: string[];
        passage: {
          start: number;
          end: number;
          tokens: number;
          of_tokens: number;
        } | null;
        relevance: number | null;
        score: number | null;
        see_newer: string | null;
        code: string | null;
        conflict: string | null;
        reasons: string[];
        relations: {
          type: string;
          other: string;
          text: string;
          inbound: boolean;
        }[];
      })[];
      returned: number;
      left_out: number;
      stopped_by: string;
      cursor: string | null;
      tokens: number;
      captions: string[];
      warnings: string[];
      degraded: {
        part: string;
        reason: string;
      }[];
      nearest_miss: {
        audience?: string;
        id: string;
        text: string;
        kind: string;
        level: string;
        topic: string | null;
        when: string;
        trust: number;
        source: string;
        speaker: string | null;
        status: string;
        pinned: boolean;
        flags: string[];
        relevance: number | null;
        score: number | null;
      } | null;
      profile: string;
    };
  };
  "GET /v1/recall": {
    arguments: {
      q?: string;
      entity?: string;
      kind?: string;
      layer?: string;
      band?: "hot" | "warm" | "cold" | "frozen";
      topic?: string;
      tag?: string;
      user?: string;
      since?: string;
      until?: string;
      as_of?: string;
      k?: number;
      episode_k?: number;
      max_tokens?: number;
      offset?: number;
      cursor?: string;
      mark_accessed?: boolean;
      profile?: string;
      whole?: boolean;
      min_confidence?: number;
      min_relevance?: number;
      turns_before?: string[];
      own_session?: string;
      include_superseded?: boolean;
    };
    answer: {
      status: "found" | "unsure" | "nothing_matched" | "nothing_stored";
      reason: string;
      confidence: number;
      notice: string;
      memories: ({
        audience?: string;
        id: string;
        text: string;
        kind: string;
        level: string;
        topic: string | null;
        when: string;
        trust: number;
        source: string;
        speaker: string | null;
        status: string;
        pinned: boolean;
        flags: string[];
        passage: {
          start: number;
          end: number;
          tokens: number;
          of_tokens: number;
        } | null;
        relevance: number | null;
        score: number | null;
        see_newer: string | null;
        code: string | null;
        conflict: string | null;
        reasons: string[];
        relations: {
          type: string;
          other: string;
          text: string;
          inbound: boolean;
        }[];
      })[];
      returned: number;
      left_out: number;
      stopped_by: string;
      cursor: string | null;
      tokens: number;
      captions: string[];
      warnings: string[];
      degraded: {
        part: string;
        reason: string;
      }[];
      nearest_miss: {
        audience?: string;
        id: string;
        text: string;
        kind: string;
        level: string;
        topic: string | null;
        when: string;
        trust: number;
        source: string;
        speaker: string | null;
        status: string;
        pinned: boolean;
        flags: string[];
        relevance: number | null;
        score: number | null;
      } | null;
      profile: string;
    };
  };
  "POST /v1/explain": {
    arguments: {
      query?: string | null;
      id?: string | null;
      profile?: string | null;
      k?: number | null;
      min_relevance?: number | null;
      turns_before?: string[] | null;
      own_session?: string | null;
    };
    answer: {
      about: "why" | "why_not" | "trace" | "origin";
      explanation: string;
      stage: string | null;
      remedy: string;
      notice: string;
      details: Record<string, unknown>;
    };
  };
  "POST /v1/inspect": {
    arguments: {
      query?: string | null;
      entity?: string | null;
      kind?: string | null;
      layer?: string | null;
      band?: "hot" | "warm" | "cold" | "frozen" | null;
      topic?: string | null;
      tag?: string | null;
      user?: string | null;
      since?: string | null;
      until?: string | null;
      as_of?: string | null;
      k?: number | null;
      episode_k?: number | null;
      max_tokens?: number | null;
      offset?: number | null;
      profile?: string | null;
      whole?: boolean | null;
      min_confidence?: number | null;
      min_relevance?: number | null;
      turns_before?: string[] | null;
      own_session?: string | null;
      include_superseded?: boolean | null;
      id?: string | null;
      candidates?: number | null;
    };
    answer: {
      notice: string;
      query: {
        text: string;
        now: string;
        as_of: string | null;
        k: number;
        max_tokens: number;
        offset: number;
        filters: Record<string, unknown>;
      };
      profile: string;
      strategy: string;
      status: "found" | "unsure" | "nothing_matched" | "nothing_stored";
      reason: string;
      confidence: number;
      confidence_reasons: {
        feature: string;
        value: number;
        contribution: number;
        why: string;
      }[];
      hits: ({
        audience?: string;
        id: string;
        text: string;
        kind: string;
        level: string;
        topic: string | null;
        when: string;
        trust: number;
        source: string;
        speaker: string | null;
        status: string;
        pinned: boolean;
        flags: string[];
        passage: {
          start: number;
          end: number;
          tokens: number;
          of_tokens: number;
        } | null;
        relevance: number | null;
        score: number | null;
        see_newer: string | null;
        code: string | null;
        conflict: string | null;
        reasons: string[];
        relations: {
          type: string;
          other: string;
          text: string;
          inbound: boolean;
        }[];
        rev: number;
        tags: string[];
        entities: string[];
        occurred_at: string | null;
        stored_at: string;
        valid_to: string | null;
        importance: number;
        classification: number;
        recalls: number;
        tokens: number;
        words: string[];
        in_context: boolean;
        evidence: ({
          by: string;
          op: "seen" | "add" | "times" | "set";
          value: number | null;
          why: string;
          via?: string;
          rank?: number;
        })[];
        channels: Record<string, {
          rank: number | null;
          score: number | null;
        }>;
      })[];
      total: number;
      context: {
        text: string;
        tokens: number;
      };
      captions: string[];
      warnings: string[];
      degraded: {
        part: string;
        reason: string;
      }[];
      nearest_miss: {
        audience?: string;
        id: string;
        text: string;
        kind: string;
        level: string;
        topic: string | null;
        when: string;
        trust: number;
        source: string;
        speaker: string | null;
        status: string;
        pinned: boolean;
        flags: string[];
        relevance: number | null;
        score: number | null;
      } | null;
      trace: {
        milliseconds: number;
        strategy: string;
        profile: string;
        cached: boolean;
        truncated: boolean;
        steps: ({
          step: string;
          status: string;
          milliseconds: number;
          came_in: number;
          left: number;
          note: string;
          candidates: ({
            rank: number;
            id: string;
            level: string;
            score: number | null;
            text: string;
            channels: Record<string, {
              rank: number | null;
              score: number | null;
            }>;
          })[];
        })[];
        merge: {
          channels: number;
          came_in: number;
          duplicates: number;
          left: number;
        };
        final: Record<string, unknown>;
      };
      why_not: {
        id: string;
        text: string;
        returned: boolean;
        stage: string;
        reason: string;
        score: number | null;
        needed: number | null;
        remedy: string;
        channels: ({
          channel: string;
          score: number | null;
          needed: number | null;
          why: string;
        })[];
      } | null;
    };
  };
  "POST /v1/memories": {
    arguments: {
      text: string;
      kind?: string | null;
      layer?: string | null;
      topic?: string | null;
      caption?: string | null;
      tags?: string[] | null;
      entities?: string[] | null;
      anchors?: string[] | null;
      importance?: number | null;
      confidence?: number | null;
      pinned?: boolean | null;
      occurred_at?: string | null;
      valid_to?: string | null;
      level?: "raw" | "item" | null;
      session?: string | null;
      speaker?: string | null;
      user?: string | null;
      audience?: string | null;
      relations?: ({
        relation: "implies" | "contradicts" | "specializes" | "generalizes" | "causes" | "correlates" | "part_of" | "context_of" | "supersedes" | "related_to" | "caused_by" | "derives_from" | "edits" | "references" | "calls" | "imports" | "extends" | "implements" | "instantiates" | "similar_to";
        other: string;
      })[] | null;
      origin?: "agent" | "tool" | "web" | null;
      source?: string | null;
      key?: string | null;
      force?: boolean | null;
    };
    answer: {
      id: string;
      status: "stored" | "duplicate" | "repeated" | "waiting" | "left_out";
      collisions: ({
        id: string;
        kind: string;
        similarity: number | null;
        action: string;
        text: string;
        probability: number | null;
      })[];
      redacted: string[];
      entities: string[];
      flags: string[];
      pending: string[];
    };
  };
  "GET /v1/memories": {
    arguments: {
      kind?: string;
      topic?: string;
      tag?: string;
      entity?: string;
      source?: string;
      session?: string;
      user?: string;
      since?: string;
      until?: string;
      stored_by?: string;
      limit?: number;
      preview?: number;
      after?: string;
      offset?: number;
      with_total?: boolean;
    };
    answer: {
      notice: string;
      memories: ({
        audience?: string;
        id: string;
        text: string;
        kind: string;
        level: string;
        topic: string | null;
        when: string;
        trust: number;
        source: string;
        speaker: string | null;
        status: string;
        pinned: boolean;
        flags: string[];
      })[];
      cursor: string | null;
      total: number | null;
    };
  };
  "POST /v1/memories/batch": {
    arguments: {
      memories: Record<string, unknown>[];
    };
    answer: {
      stored: number;
      refused: number;
      results: {
        id?: string;
        status: string;
        error?: {
          kind: string;
          message: string;
          remedy: string;
        };
      }[];
    };
  };
  "GET /v1/memories/{id}": {
    arguments: {
      id: string;
    };
    answer: {
      notice: string;
      memory: {
        id: string;
        rev: number;
        text: string;
        kind: string;
        level: string;
        layer: string | null;
        topic: string | null;
        tier: string;
        tags: string[];
        entities: string[];
        caption: string | null;
        speaker: string | null;
        session: string | null;
        seq: number | null;
        parent: string | null;
        subject: string | null;
        attribute: string | null;
        source: string;
        source_class: string;
        writer: string;
        stored_at: string;
        occurred_at: string | null;
        occurred_end: string | null;
        valid_from: string | null;
        valid_to: string | null;
        live_from: string;
        status: string;
        live_to: string | null;
        ended_by: string | null;
        flags: string[];
        importance: number;
        confidence: number;
        emotion: number;
        relevance: number;
        decay: number;
        pinned: boolean;
        protected: boolean;
        trust: number;
        integrity: number;
        credibility: number;
        classification: number;
        original: string | null;
        language: string | null;
        tokens: number;
        recalls: number;
        last_recalled_at: string | null;
        metadata: Record<string, unknown>;
        anchors: string[];
      };
    };
  };
  "PATCH /v1/memories/{id}": {
    arguments: {
      id: string;
      text?: string | null;
      kind?: string | null;
      layer?: string | null;
      topic?: string | null;
      caption?: string | null;
      tags?: string[] | null;
      entities?: string[] | null;
      anchors?: string[] | null;
      importance?: number | null;
      confidence?: number | null;
      pinned?: boolean | null;
      occurred_at?: string | null;
      valid_to?: string | null;
      audience?: string | null;
      force?: boolean | null;
      revision?: number | null;
    };
    answer: {
      id: string;
      rev: number;
      changed: string[];
      erased?: string[];
      notice: string;
      memory: {
        audience?: string;
        id: string;
        text: string;
        kind: string;
        level: string;
        topic: string | null;
        when: string;
        trust: number;
        source: string;
        speaker: string | null;
        status: string;
        pinned: boolean;
        flags: string[];
      };
    };
  };
  "GET /v1/memories/{id}/history": {
    arguments: {
      id: string;
      limit?: number;
      offset?: number;
    };
    answer: {
      notice: string;
      revisions: ({
        rev: number;
        text: string;
        from: string | null;
        to: string | null;
      })[];
      left_out: number;
    };
  };
  "GET /v1/memories/{id}/timeline": {
    arguments: {
      id: string;
      window?: number;
    };
    answer: {
      notice: string;
      memories: ({
        audience?: string;
        id: string;
        text: string;
        kind: string;
        level: string;
        topic: string | null;
        when: string;
        trust: number;
        source: string;
        speaker: string | null;
        status: string;
        pinned: boolean;
        flags: string[];
      })[];
      left_out: number;
    };
  };
  "GET /v1/memories/{id}/usage": {
    arguments: {
      id: string;
    };
    answer: {
      recalls: number;
      in_30_days: number;
      in_90_days: number;
      last_at: string | null;
      stamps: string[];
    };
  };
  "GET /v1/memories/{id}/links": {
    arguments: {
      id: string;
      limit?: number;
      offset?: number;
    };
    answer: {
      left_out: number;
      links: {
        from: {
          kind: string;
          id: string;
        };
        type: string;
        to: {
          kind: string;
          id: string;
        };
        weight: number;
        confidence: number;
        source: string;
      }[];
    };
  };
  "POST /v1/memories/{id}/links": {
    arguments: {
      id: string;
      relation: "implies" | "contradicts" | "specializes" | "generalizes" | "causes" | "correlates" | "part_of" | "context_of" | "supersedes" | "related_to" | "caused_by" | "derives_from" | "edits" | "references" | "calls" | "imports" | "extends" | "implements" | "instantiates" | "similar_to";
      other: string;
      weight?: number | null;
      remove?: boolean | null;
    };
    answer: {
      status: "linked" | "removed" | "unchanged";
      id: string;
      relation: string;
      other: string;
    };
  };
  "GET /v1/memories/{id}/why": {
    arguments: {
      id: string;
      q?: string;
      profile?: string;
      k?: number;
      min_relevance?: number;
      turns_before?: string[];
      own_session?: string;
    };
    answer: {
      about: "why" | "why_not" | "trace" | "origin";
      explanation: string;
      stage: string | null;
      remedy: string;
      notice: string;
      details: Record<string, unknown>;
    };
  };
  "GET /v1/memories/{id}/why-not": {
    arguments: {
      id: string;
      q: string;
      profile?: string;
      k?: number;
      min_relevance?: number;
      turns_before?: string[];
      own_session?: string;
    };
    answer: {
      about: "why" | "why_not" | "trace" | "origin";
      explanation: string;
      stage: string | null;
      remedy: string;
      notice: string;
      details: Record<string, unknown>;
    };
  };
  "POST /v1/forget": {
    arguments: {
      ids?: string[] | null;
      sweep?: boolean | null;
      erase?: boolean | null;
      token?: string | null;
      reason?: string | null;
      share?: number | null;
      min_age_days?: number | null;
      scope?: {
        topic?: string;
        entity?: string;
        kind?: string;
        layer?: string;
        tag?: string;
        source?: string;
        session?: string;
      } | null;
    };
    answer: {
      done: boolean;
      token: string | null;
      notice: string;
      memories: ({
        id: string;
        text: string | null;
      })[];
      kept: {
        id: string;
        reason: string;
      }[];
      derived: string[];
      quarantined: string[];
      restored: string[];
      run: string | null;
      left_out: number;
      left: string[];
      out_of_reach: string[];
    };
  };
  "POST /v1/restore": {
    arguments: {
      ids: string[];
    };
    answer: {
      restored: string[];
    };
  };
  "GET /v1/inbox": {
    arguments: {
      source?: string;
      refused?: boolean;
      limit?: number;
      offset?: number;
    };
    answer: {
      notice: string;
      waiting: ({
        id: string;
        text: string;
        state: string;
        reason: string;
        since: string;
        source: string;
        source_class: string;
        level: string;
        kind: string | null;
        topic: string | null;
        speaker: string | null;
        worth: number | null;
        flags: string[];
      })[];
      total: number;
    };
  };
  "POST /v1/inbox": {
    arguments: {
      ids: string[];
      decision: "accept" | "refuse" | "merge" | "undo";
      text?: string | null;
      into?: string | null;
    };
    answer: {
      decision: string;
      ids: string[];
    };
  };
  "POST /v1/undo": {
    arguments: {
      id?: string | null;
      preview?: boolean | null;
    };
    answer: {
      done: boolean;
      id: string;
      doing: string;
      restored: string[];
      taken_back: string[];
    };
  };
  "POST /v1/consolidate": {
    arguments: {
      token?: string | null;
      share?: number | null;
      min_age_days?: number | null;
      scope?: {
        topic?: string;
        entity?: string;
        kind?: string;
        layer?: string;
        tag?: string;
        source?: string;
        session?: string;
      } | null;
      similarity?: number | null;
    };
    answer: {
      done: boolean;
      token: string | null;
      run: string | null;
      notice: string;
      proposals: ({
        job: string;
        why: string;
        leaves: string[];
        text: string | null;
      })[];
      left: string[];
      left_out: number;
    };
  };
  "GET /v1/entities": {
    arguments: {
      prefix?: string;
      kind?: string;
      min_memories?: number;
      limit?: number;
      offset?: number;
    };
    answer: {
      notice: string;
      entities: ({
        id: string;
        kind: string;
        name: string;
        aliases: string[];
        mentions: number;
        pace: string;
        last_seen_at: string | null;
      })[];
      more: boolean;
    };
  };
  "GET /v1/threads": {
    arguments: {
      id?: string;
      limit?: number;
      offset?: number;
    };
    answer: {
      notice: string;
      threads: Record<string, unknown>[];
      more: boolean;
      left_out: number;
    };
  };
  "GET /v1/threads/{id}": {
    arguments: {
      id: string;
      limit?: number;
      offset?: number;
    };
    answer: {
      notice: string;
      threads: Record<string, unknown>[];
      more: boolean;
      left_out: number;
    };
  };
  "GET /v1/insights": {
    arguments: {
      id?: string;
      offset?: number;
    };
    answer: {
      notice: string;
      insights: Record<string, unknown>[];
      left_out: number;
    };
  };
  "GET /v1/files": {
    arguments: {
      path: string;
      intents?: number;
    };
    answer: {
      notice: string;
      paths: string[];
      edits: number;
      first_at: string | null;
      last_at: string | null;
      sessions: string[];
      days: {
        day: string;
        operation: string;
        times: number;
      }[];
      intents: {
        text: string;
        times: number;
        last_at: string;
      }[];
      memories: {
        id: string;
        text: string;
        when: string;
        code: string;
      }[];
    };
  };
  "POST /v1/files/edits": {
    arguments: {
      path: string;
      operation?: "read" | "edit" | "write" | "bash" | "other" | null;
      intent?: string | null;
      session?: string | null;
      at?: string | null;
      item?: string | null;
    };
    answer: {
      new: number;
      known: number;
    };
  };
  "GET /v1/profiles": {
    arguments: Record<string, never>;
    answer: {
      profiles: {
        name: string;
        title: string;
        deep: boolean;
        default: boolean;
        parts: string[];
      }[];
    };
  };
  "GET /v1/graph": {
    arguments: {
      node: string;
      depth?: number;
      limit?: number;
    };
    answer: {
      notice: string;
      nodes: ({
        id: string;
        what: "memory" | "entity";
        label: string;
        kind: string;
        hop: number;
      })[];
      edges: {
        from: string;
        to: string;
        type: string;
        weight: number;
      }[];
      more: boolean;
    };
  };
  "GET /v1/times": {
    arguments: {
      kind?: string;
      topic?: string;
      tag?: string;
      entity?: string;
      source?: string;
      session?: string;
      user?: string;
      since?: string;
      until?: string;
    };
    answer: {
      days: {
        day: string;
        count: number;
        kinds: Record<string, unknown>;
      }[];
      sessions: {
        session: string;
        first: string;
        last: string;
        count: number;
      }[];
      counted: number;
    };
  };
  "GET /v1/maintenance": {
    arguments: {
      limit?: number;
    };
    answer: {
      runs: {
        run: string;
        at: string;
        jobs: Record<string, unknown>;
      }[];
    };
  };
  "GET /v1/stats": {
    arguments: Record<string, never>;
    answer: {
      space: string;
      memories: number;
      entities: number;
      by_kind: Record<string, unknown>;
    };
  };
  "GET /v1/events": {
    arguments: {
      after?: number;
      limit?: number;
    };
    answer: {
      events: ({
        seq: number;
        at: string;
        kind: string;
        item: string | null;
        actor: string;
        detail: string;
      })[];
    };
  };
  "POST /v1/values": {
    arguments: {
      values: {
        namespace: string[];
        key: string;
        value?: Record<string, unknown>;
        texts?: string[];
        indexed?: boolean;
        ttl_minutes?: number;
      }[];
    };
    answer: {
      redacted: {
        place: string;
        kinds: string[];
      }[];
    };
  };
  "POST /v1/values/find": {
    arguments: {
      get?: {
        namespace: string[];
        key: string;
      }[] | null;
      search?: {
        namespace: string[];
        query?: string;
        filter?: Record<string, unknown>;
        limit?: number;
        offset?: number;
        abstain?: boolean;
        profile?: string;
      }[] | null;
      namespaces?: {
        prefix?: string[];
        suffix?: string[];
        max_depth?: number;
        limit?: number;
        offset?: number;
      }[] | null;
    };
    answer: {
      notice: string;
      get: ({
        id: string;
        namespace: string[];
        key: string;
        value: Record<string, unknown>;
        created_at: string;
        updated_at: string;
        score: number | null;
        status?: string;
        confidence?: number;
      } | null)[];
      search: ({
        values: ({
          id: string;
          namespace: string[];
          key: string;
          value: Record<string, unknown>;
          created_at: string;
          updated_at: string;
          score: number | null;
          status?: string;
          confidence?: number;
        })[];
        more: boolean;
      })[];
      namespaces: string[][][];
    };
  };
  "GET /v1/questions": {
    arguments: Record<string, never>;
    answer: {
      questions: ({
        query: string;
        relevant: string[] | null;
        wrong: string[];
        filters: Record<string, unknown>;
        now: string;
      })[];
    };
  };
  "POST /v1/questions": {
    arguments: {
      query: string;
      relevant?: string[] | null;
      wrong?: string[] | null;
      remove?: boolean | null;
      kind?: string | null;
      topic?: string | null;
      tag?: string | null;
      entity?: string | null;
      user?: string | null;
      since?: string | null;
      until?: string | null;
    };
    answer: {
      questions: ({
        query: string;
        relevant: string[] | null;
        wrong: string[];
        filters: Record<string, unknown>;
        now: string;
      })[];
    };
  };
  "GET /v1/conflicts": {
    arguments: Record<string, never>;
    answer: {
      notice: string;
      conflicts: ({
        memory: {
          audience?: string;
          id: string;
          text: string;
          kind: string;
          level: string;
          topic: string | null;
          when: string;
          trust: number;
          source: string;
          speaker: string | null;
          status: string;
          pinned: boolean;
          flags: string[];
        };
        others: {
          kind: string;
          device: string;
          at: string;
          text: string;
        }[];
      })[];
    };
  };
  "POST /v1/memories/{id}/settle": {
    arguments: {
      id: string;
      keep: "current" | "other" | "both";
    };
    answer: {
      id: string;
      text: string;
    };
  };
  "GET /v1/sync": {
    arguments: Record<string, never>;
    answer: {
      name: string;
      device: string;
      devices: {
        id: string;
        name: string;
      }[];
      conflicts: number;
      hash: string;
      targets: {
        target: string;
        ceiling: number;
        last: string;
      }[];
    };
  };
  "POST /v1/sync": {
    arguments: {
      device: string[];
      vector: Record<string, unknown>;
      ranges: Record<string, unknown>;
      ops: string[];
      ceiling: number;
    };
    answer: {
      device: string[];
      vector: Record<string, unknown>;
      ranges: Record<string, unknown>;
      ops: string[];
      ceiling: number;
      digest: string;
    };
  };
  "POST /v1/import": {
    arguments: Record<string, never>;
    answer: {
      stored: number;
      signed: boolean;
    };
  };
  "GET /v1/checks": {
    arguments: Record<string, never>;
    answer: {
      ok: boolean;
      checks: {
        name: string;
        ok: boolean;
        warning: boolean;
        detail: string;
      }[];
    };
  };
  "GET /v1/members": {
    arguments: Record<string, never>;
    answer: {
      members: {
        id: string;
        name: string;
        role: string;
        you: boolean;
      }[];
    };
  };
  "GET /v1/session": {
    arguments: Record<string, never>;
    answer: {
      person?: string;
      name: string;
      scope: "anyone" | "read" | "write" | "admin" | "local";
      may: string[];
      space: string | null;
      version: string;
      max_classification: number | null;
      browser: boolean;
      spaces: string[];
    };
  };
  "POST /v1/session": {
    arguments: {
      ticket?: string;
      token?: string;
    };
    answer: {
      person?: string;
      name: string;
      scope: "anyone" | "read" | "write" | "admin" | "local";
      may: string[];
      space: string | null;
      version: string;
      max_classification: number | null;
      browser: boolean;
      page_key: string;
    };
  };
  "DELETE /v1/session": {
    arguments: Record<string, never>;
    answer: {
      ended: boolean;
    };
  };
  "GET /health": {
    arguments: Record<string, never>;
    answer: {
      status: string;
    };
  };
  "GET /ready": {
    arguments: Record<string, never>;
    answer: {
      status: string;
    };
  };
  "GET /openapi.json": {
    arguments: Record<string, never>;
    answer: Record<string, unknown>;
  };
}
