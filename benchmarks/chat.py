"""A chat model attacked for real, on this machine: python -m scrimp.benchmarks.chat (pip install 'scrimp[llama]').

SmolLM2-135M-Instruct (fetched, 93 MB) behind a llama.cpp server, asked as a zero-shot classifier of the held-out sentences
and attacked with labels only. With --serve the server stays up and nothing is attacked: chat.json, written beside the
record, is then a victim for `scrimp attack --victim chat.json`.
"""

from __future__ import annotations

import argparse
import json
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..attacks.record import Record
from ..resources import fetch
from ..victims import HELD_OUT, load_endpoint
from .data import read_examples
from .run import attack

MEASURED = Path(__file__).parent / "measured"
MODEL = "SmolLM2-135M-Instruct.Q4_1"
SHOWN = 3  # fooled texts whose every query is in the record


def serve(threads: int) -> Any:
    """A llama.cpp server on the loopback; it stops with the process."""
    try:
        import xllamacpp  # type: ignore[import-not-found,unused-ignore]
    except ImportError as error:
        raise SystemExit("a llama.cpp server is needed here: pip install 'scrimp[llama]'") from error

    how = xllamacpp.CommonParams()
    how.model.path = str(fetch("smollm2"))
    how.hostnames, how.port, how.use_jinja = ["127.0.0.1"], 0, True
    how.n_ctx, how.n_parallel = 4096, 4
    how.cpuparams.n_threads = how.cpuparams_batch.n_threads = threads
    return xllamacpp.Server(how)


def settings(address: str) -> dict[str, Any]:
    return {
        "url": f"{address}/v1/chat/completions",
        "model": MODEL,
        "labels": ["negative", "positive"],
        "prompt": "Is this text {labels}? Answer with one of these words and nothing else.\n\nText: {text}\n\nAnswer:",
        "concurrency": 4,
        "timeout": 120,
        "transcript": "transcript.jsonl",
        # Nobody is paid here: prices of a small hosted model, so that the accounts are seen to work.
        "money": {"cap": 0.05, "per_million_prompt_tokens": 0.15, "per_million_completion_tokens": 0.6},
    }


def told(record: Record, replies: dict[str, str]) -> dict[str, Any]:
    """One fooled text: what went in, what came out, what the model said to both."""
    before, after = " ".join(record.text), " ".join(record.adversarial or ())
    said = {"said": replies[before], "then_said": replies[after]}
    return {"text": before, "becomes": after, "charged": record.charged} | said


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=26, help="the first N sentences; the model gets half of them right")
    parser.add_argument("--budget", type=int, default=30, help="(%(default)s)")
    parser.add_argument("--recipe", default="scrimp-labels", help="one that needs labels only (%(default)s)")
    parser.add_argument("--threads", type=int, default=1, help="of the server (%(default)s)")
    parser.add_argument("--serve", action="store_true", help="only keep the server up, until interrupted")
    parser.add_argument("--folder", type=Path, default=Path("chat"), help="for chat.json and the transcript (%(default)s)")
    parser.add_argument("--out", type=Path, default=MEASURED / "chat.json", help="where the record goes (%(default)s)")
    args = parser.parse_args(arguments)
    server = serve(args.threads)
    args.folder.mkdir(parents=True, exist_ok=True)
    file = args.folder / "chat.json"
    file.write_text(json.dumps(settings(server.listening_address), indent=1) + "\n", encoding="utf-8")
    if args.serve:
        print(f"{server.listening_address}; attack it with: scrimp attack --victim {file} --data FILE", flush=True)
        threading.Event().wait()
    transcript = args.folder / "transcript.jsonl"
    transcript.unlink(missing_ok=True)
    victim: Any = load_endpoint(file)
    examples = read_examples(HELD_OUT, labels=victim.labels, n=args.n)
    found = attack(victim, examples, args.recipe, budget=args.budget, seed=0, guide=None, judge=None, width=8)
    lines = [json.loads(line) for line in transcript.read_text("utf-8").splitlines()]
    replies = {" ".join(line["text"]): line["reply"] for line in lines}
    kept = (
        "n",
        "skipped",
        "errors",
        "attacked",
        "fooled",
        "success_rate",
        "original_accuracy",
        "charged_mean",
        "perturbed_pct",
    )
    record = {
        "victim": victim.name,
        "recipe": args.recipe,
        "budget": args.budget,
        "prompt": victim.prompt,
        "summary": {name: found.summary[name] for name in kept},
        "charged": sum(one.charged for one in found),
        "endpoint": victim.notes,
        "replies": dict(Counter(line["reply"] for line in lines).most_common(10)),
        "texts_sent_twice": len(lines) - len(replies),
        "fooled": [told(one, replies) for one in found.fooled[:SHOWN]],
    }
    args.out.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(json.dumps(record, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
