"""A training log in which nothing is wrong, made here: what a signature must not be looking at.

The kinds of lines that healthy jobs print: steps, progress bars, the settings they dump at the
start, the libraries' notes, warnings that everybody has learned to ignore. Words of alarm are in
it on purpose, since healthy jobs print them too.
"""

LINES = 20_000

_STEPS = (
    "[{date} {clock}][I][train.py:212] step={n} loss={loss} dt=0.41{digit} tokens_per_s={tokens}",
    "[rank{rank}]: {date} {clock} INFO step: {n}  loss: {loss}  memory: 38.{digit}GiB(48.10%)",
    "iter {n}: loss {loss}, time {tokens}.22ms, mfu 41.{digit}%",
    " [{date} {clock}] iteration 1{digit}0/ 500000 | samples: {tokens} | lm loss: {loss}E+00 |",
    "{{'loss': {loss}, 'grad_norm': 0.9{digit}, 'learning_rate': 2e-05, 'epoch': 1.{digit}}}",
    "Epoch: [{digit}][{n}/5004] Time 0.3{digit} (0.36) Data 0.00{digit} Loss {loss} Acc@1 71.2",
    "Train: {digit}0%|####    | {n}/50000 [01:2{digit}<04:11, 3.2{digit}it/s, loss={loss}]",
    "x{host}: step {n} of 500000, {tokens} tokens/s per device, loss {loss}",
)
_OTHERS = (
    "[{date} {clock}][I][checkpoint.py:88] saved checkpoint at step {n} to checkpoints/step-{n}",
    "[{date} {clock}][I][checkpoint.py:91] removed old checkpoint checkpoints/step-{n}",
    "rank {rank}: resumed from step {n}, {tokens} samples seen",
    "eval step {n}: validation loss {loss}, perplexity 12.{digit}, best so far 2.1",
    "learning_rate: 0.000{digit}",
    "  gradient_accumulation_steps: {digit}",
    '  "hidden_size": 4096, "num_attention_heads": 32, "error_if_nonfinite": false,',
    "max_tries: {digit}, timeout: {tokens}, rdzv_backend: static, monitor_interval: 5",
    "ignore_errors: True  abort_on_nan: False  kill_timeout: 30  port: 29500",
    "Namespace(batch_size={digit}, lr=0.0003, on_error='raise', host='x{host}', port=29500)",
    "x{host}:{pid}:{pid} [{digit}] NCCL INFO Bootstrap : Using hsn0:10.115.3.{digit}<0>",
    "x{host}:{pid}:{pid} [{digit}] NCCL INFO Channel 0{digit}/0 : {rank}[1] -> 3[0] via P2P",
    "x{host}:{pid}:{pid} [{digit}] NCCL INFO Connected all rings, use ring PXN 0 GDR 1",
    "x{host}:{pid}:{pid} [{digit}] NCCL INFO comm 0x55d{pid} rank {rank} nranks 64 - Init COMPLETE",
    "x{host}:{pid}:{pid} [{digit}] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]",
    "x{host}:{pid}:{pid} [0] NCCL INFO [Service thread] Connection closed by localRank 2",
    "x{host}:{pid}:{pid} [{digit}] NCCL INFO Plugin Path : libnccl-net.so, error codes off",
    "x{host}:{pid}:{pid} [{digit}] NCCL INFO Timeout set by environment: NCCL_IB_TIMEOUT=22",
    "[W{date} {clock} ProcessGroupNCCL.cpp:4115] Warning: using GPU {digit} to perform barrier",
    "[W socket.cpp:601] [c10d] The IPv6 network addresses of (x{host}, 29500) are not known yet",
    "/usr/lib/python3/site-packages/torch/utils/data.py:56{digit}: UserWarning: created 16 workers",
    "FutureWarning: `clean_up_tokenization_spaces` was not set. It will be set to `True`",
    "DeprecationWarning: the load_module() method is deprecated and slated for removal",
    "WARNING:root:no error budget is set; errors will not be counted",
    "Setting OMP_NUM_THREADS environment variable for each process to be 1 in default",
    "[{date} {clock}] [INFO] [engine.py:10{digit}] DeepSpeed Flops Profiler Enabled: False",
    "[{date} {clock}] [INFO] [real_accelerator.py:20{digit}] Setting ds_accelerator to cuda",
    "overflow detected, skipping step, reducing loss scale to {tokens}",
    "|CCL_INFO| process launcher: hydra, local size: 12, rank {rank}",
    "MPICH_GPU_SUPPORT_ENABLED={digit} FI_PROVIDER=cxi FI_CXI_RX_MATCH_MODE=hybrid",
    "libfabric:{pid}:core:core:fi_getinfo_():120{digit}<info> provider cxi returned",
    "Downloading shards: {digit}0%|###   | {digit}/10 [00:0{digit}<00:11, 1.{digit}s/it]",
    "loading shard {n} from /data/tokens/train-{n}.bin, 0 errors, 0 retries",
    "wandb: Synced {digit} files; network unavailable for 0 s, no failures",
    "Memory: allocated 38.{digit} GB, reserved 41.0 GB, host free {tokens} MB, no swap",
    "host x{host}: gpu {digit} temperature 6{digit}C power 41{digit}W ecc_errors=0 xid=0 state=ok",
    "heartbeat from rank {rank}: alive, errors: 0, failed: 0, killed: 0",
    "torch.compile: graph break in forward at layers.py:{n}, reason: call_function print",
    "total {tokens} parameters, {digit} frozen, process group timeout 0:30:00, device cuda:{digit}",
    "[{date} {clock}][D][data.py:7{digit}] worker {digit} exited with code 0, killed nothing",
    "",
)
_RARE = (  # said once when a job or a machine starts
    "Thu Nov 29 {clock} x{host} kernel: audit: type=1400 audit({tokens}.1:2{digit}): allowed",
    "Thu Nov 29 {clock} x{host} kernel: nvidia-nvlink: Nvlink Core is being initialized, device 2",
    "Thu Nov 29 {clock} x{host} kernel: amdgpu 0000:c1:00.0: amdgpu: ring gfx uses VM inv eng 4",
    "Thu Nov 29 {clock} x{host} kernel: mlx5_core 0000:4b:00.0: Port module event: module 1",
    "Thu Nov 29 {clock} x{host} kernel: Lustre: lfs-OST000{digit}: Connection restored to 10.1.2.3",
    "Thu Nov 29 {clock} x{host} kernel: EDAC MC{digit}: Giving out device to module skx_edac",
    "Thu Nov 29 {clock} x{host} slurmd[{pid}]: task/affinity: binding task {digit} to 0xff",
    "srun: job {pid} queued and waiting for resources",
    "srun: job {pid} has been allocated resources",
    "Launching on 64 hosts, {digit} ranks per host; host x{host} first",
    "export PATH=/opt/cray/pe/bin:/usr/bin LD_LIBRARY_PATH=/opt/rocm/lib:/usr/lib64 TERM=xterm",
)


def benign_log() -> bytes:
    """The log: steps, as many lines of libraries and settings, now and then a start or a kernel."""
    return b"".join(_line(number) for number in range(LINES))


def _line(number: int) -> bytes:
    text = _kind(number).format(
        n=number,
        rank=number % 64,
        digit=number // 7 % 10,
        loss=f"2.{number * 7919 % 10_000:04}",
        tokens=10_000 + number * 31 % 80_000,
        host=f"{3000 + number % 7:04}c0s{number % 8}b0n0",
        pid=10_000 + number * 17 % 50_000,
        date=f"2026-11-{number % 28 + 1:02}",
        clock=f"{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}",
    )
    return text.encode() + b"\n"


def _kind(number: int) -> str:
    if number % 2000 == 1999:
        return _RARE[number // 2000 % len(_RARE)]
    kinds = _OTHERS if number % 2 else _STEPS
    return kinds[number // 2 % len(kinds)]
