"""The words of a report that belong to no cause: headings, states and layers, in both languages.

A plain table, so that a report costs no parsing. `{…}` are places filled in by the renderer.
"""

from __future__ import annotations

from typing import Literal

Lang = Literal["en", "zh"]

LABELS: dict[str, tuple[str, str]] = {
    # health
    "health.healthy": ("healthy", "正常"),
    "health.degraded": ("degraded", "性能下降"),
    "health.down": ("down", "不可用"),
    "health.unknown": ("unknown", "未知"),
    # layers and their states
    "layer.load": ("load", "负载"),
    "layer.capacity": ("capacity", "调度/容量"),
    "layer.hardware": ("hardware", "算子/硬件"),
    "layer.params": ("params", "数值/参数"),
    "layer.deployment": ("deployment", "部署"),
    "layer.gateway": ("gateway", "网关"),
    "layer.none": ("none", "无"),
    "status.ok": ("ok", "正常"),
    "status.cause": ("CAUSE", "根因"),
    "status.symptom": ("symptom", "症状"),
    "status.not-evaluated": ("not evaluated", "未评估"),
    "severity.info": ("info", "提示"),
    "severity.warning": ("WARNING", "警告"),
    "severity.critical": ("CRITICAL", "严重"),
    # headings
    "title": ("LLMedic", "LLMedic"),
    "layers": ("Layers, top down", "逐层定位（自上而下）"),
    "layer": ("layer", "层"),
    "status": ("status", "状态"),
    "summary": ("what it says", "说明"),
    "cause": ("Cause", "根因"),
    "evidence": ("Evidence", "证据"),
    "observation": ("observation", "观测项"),
    "value": ("value", "数值"),
    "compared": ("compared to", "对照"),
    "window": ("window", "时间窗"),
    "source": ("source", "来源"),
    "beneath": ("Explained by it, not to be treated on their own", "由它引起，无需单独处理"),
    "change": ("Change one thing", "只改一处"),
    "from-to": ("{variable}: {from_} → {to}", "{variable}：{from_} → {to}"),
    "to": ("{variable}: set to {to}", "{variable}：设为 {to}"),
    "from": ("{variable}: now {from_}; no number can be justified from this evidence",
             "{variable}：当前 {from_}；现有证据不足以给出具体数值"),
    "absent": ("{variable}: this engine or release has no such setting; what is said above still holds",
               "{variable}：该引擎或版本没有这个参数；请按上面的说明处置"),
    "add": ("command line", "命令行"),
    "drop": ("take off the command line", "从命令行去掉"),
    "colon": (": ", "："),
    "comma": (", ", "，"),
    "semicolon": ("; ", "；"),
    "flags-known": ("flags known: {count}", "已知 {count} 个参数"),
    "lines-read": ("log lines read: {count}", "已读 {count} 行日志"),
    "errors-seen": ("errors: {names}", "错误：{names}"),
    "replicas": (", {count} replicas", "，{count} 个副本"),
    "engine-unknown": ("engine unknown", "引擎未知"),
    "expected": ("expect", "预期"),
    "verify": ("verify", "验证"),
    "others": ("Also possible", "其它可能"),
    "more": ("llmedic explain {id}", "llmedic explain {id} --lang zh"),
    "binding": ("Which limit binds", "当前瓶颈"),
    "disagreements": ("The witnesses disagree", "证据互相矛盾"),
    "gaps": ("Not seen (not evaluated is not OK)", "未能看到（未评估不等于正常）"),
    "how": ("how", "补上的办法"),
    "cannot-tell": ("Cannot be decided without it", "证据不足而无法判断的原因"),
    "sure": ("{percent} % sure", "置信度 {percent} %"),
    "healthy": ("Nothing is wrong in what was seen.", "就所见证据而言，运行正常。"),
    "undecided": ("The evidence does not decide.", "证据不足，无法判断。"),
    "restart": (
        "Restarting would destroy the evidence: run `llmedic snapshot` first.",
        "重启会毁掉现场：请先运行 `llmedic snapshot`。",
    ),
    "and-more": ("and {count} more (`--format json` lists them)", "另有 {count} 个（`--format json` 可列出全部）"),
    # explain
    "explain.cause": ("cause", "原因"),
    "explain.observation": ("observation", "观测项"),
    "explain.symptom": ("symptom", "症状"),
    "explain.condition": ("condition", "条件"),
    "explain.pitfall": ("pitfall", "陷阱"),
    "explain.where": ("Where it shows", "所在层"),
    "explain.change": ("The one change", "只改一处"),
    "explain.verify": ("How to check it", "如何验证"),
    "explain.what": ("What it is", "是什么"),
    "explain.decided_by": ("What decides it", "如何判定"),
    "explain.remedy": ("Remedy", "处置"),
    "explain.explains": ("Brings about", "会引起"),
    "explain.explained-by": ("May be brought about by", "可能由以下原因引起"),
    "explain.unit": ("Unit", "单位"),
    "explain.meaning": ("Meaning", "含义"),
    "explain.question": ("Question", "提问"),
    "explain.symptom-text": ("Symptom", "现象"),
    "explain.green": ("Why the usual indicators stay green", "为什么常用指标都是绿的"),
    "explain.evidence": ("What decides it", "关键证据"),
    "explain.causes": ("See also", "参见"),
}  # fmt: skip
"""Key -> (English, Chinese)."""

INDICATORS: dict[str, tuple[str, str]] = {
    "request_rate_per_s": ("arrivals", "到达速率"),
    "prompt_tokens_mean": ("prompt length", "输入长度"),
    "output_tokens_mean": ("answer length", "输出长度"),
    "requests_running": ("running", "运行中"),
    "requests_waiting": ("waiting", "等待中"),
    "kv_cache_usage_ratio": ("KV usage", "KV 占用"),
    "preemptions_per_min": ("preemptions", "抢占"),
    "output_tokens_count": ("generated", "产出"),
    "output_tokens_per_s": ("output", "输出"),
    "prefill_tokens_per_s": ("prefill", "预填充"),
    "batch_tokens_mean": ("tokens per step", "每步 token"),
    "tpot_s": ("time per token", "每 token 用时"),
    "itl_s": ("time between tokens", "token 间隔"),
    "frontend_cpu_cores": ("API server CPU", "API 前端 CPU"),
    "ttft_unexplained_ratio": ("TTFT outside queue and prefill", "TTFT 中排队和预填充之外的部分"),
    "gpu_temp_c": ("GPU temperature", "GPU 温度"),
    "gpu_sm_clock_mhz": ("GPU clock", "GPU 频率"),
    "gpu_power_w": ("GPU power", "GPU 功率"),
    "gpu_mem_bandwidth_ratio": ("memory bandwidth", "显存带宽"),
    "xid_errors": ("Xid errors", "Xid 错误"),
    "host_cpu_util_ratio": ("host CPU", "主机 CPU"),
    "cpu_wait_ratio": ("waiting for a CPU", "等待 CPU"),
    "aborted_ratio": ("aborted", "中断"),
    "error_finish_ratio": ("ended in error", "出错结束"),
    "http_error_ratio": ("HTTP errors", "HTTP 错误"),
}
"""Short words for the observations that sum a layer or a limit up in one line; `explain` tells about each."""

VARIABLES_ZH: dict[str, str] = {
    "replicas": "副本数",
    "gateway route for long prompts": "网关的长提示词路由",
    "request max_tokens": "请求的 max_tokens",
    "gateway limit of n": "网关对 n 的上限",
    "position of the changing text in the prompt": "提示词中易变内容的位置",
    "request set of the benchmark": "压测的请求集",
    "admission watermark": "准入水位",
    "liveness check": "存活检查",
    "load balancing policy": "负载均衡策略",
    "node in rotation": "节点是否在线",
    "gpu power limit": "GPU 功率上限",
    "nvidia-fabricmanager service": "nvidia-fabricmanager 服务",
    "network link in service": "在用的网络链路",
    "cpu affinity of the engine": "引擎的 CPU 绑定",
    "cpu frequency governor": "CPU 调频策略",
    "host memory reserved for offload": "为卸载预留的主机内存",
    "engine version": "引擎版本",
    "feature that triggers it": "触发问题的功能",
    "HPA metric": "HPA 指标",
    "/dev/shm size": "/dev/shm 大小",
    "container memory limit": "容器内存限额",
    "other process on the GPU": "GPU 上的其它进程",
    "model files": "模型文件",
    "model revision": "模型版本（revision）",
    "warm-up before ready": "就绪前的预热",
    "traffic share of the replica": "该副本的流量占比",
    "proxy response buffering": "代理的响应缓冲",
    "gateway read timeout": "网关读超时",
    "client timeout": "客户端超时",
    "server keep-alive timeout": "服务端 keep-alive 超时",
    "client retries": "客户端重试",
    "cancellation on disconnect": "断开即取消",
    "client connection limit": "客户端连接上限",
    "benchmark client processes": "压测客户端进程数",
    "gateway failure counting": "网关的失败计数",
    "routing key": "路由键",
}
"""Variables of a change that are words and not the name of a setting."""


def indicator(name: str, lang: Lang) -> str:
    """Short words for an observation, its statistic left out; the name itself where there are none."""
    found = INDICATORS.get(name.partition(" ")[0])
    return name if found is None else found[lang == "zh"]


def variable(name: str, lang: Lang) -> str:
    """A change's variable in words of the language; names of settings are the same in all."""
    return VARIABLES_ZH.get(name, name) if lang == "zh" else name


def label(key: str, lang: Lang) -> str:
    """The words for a key; the key itself when the table has no entry (a layer or state of a later version)."""
    found = LABELS.get(key)
    if found is None:
        return key.partition(".")[2] or key
    return found[0] if lang == "en" else found[1]
