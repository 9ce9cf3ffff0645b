"""A function of AWS Lambda that answers a task later: event["reply_to"] is the call of duly's API that takes the answer.

DULY_URL is where `duly daemon` or `duly serve` is reached, DULY_TOKEN a token of it that may write for the agent.
"""
import json
import os
import urllib.request


def handler(event, context):
    try:
        outcome = {"result": {"report": "all quiet, " + event["agent_id"]}}  # work of up to 15 minutes
    except Exception as failure:  # the task is tried again, as its attempts allow
        outcome = {"error": str(failure)}
    urllib.request.urlopen(urllib.request.Request(
        os.environ["DULY_URL"] + event["reply_to"], json.dumps({"payload": outcome}).encode(),
        {"Content-Type": "application/json", "Authorization": "Bearer " + os.environ.get("DULY_TOKEN", "")}), timeout=30)
