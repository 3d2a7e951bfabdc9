"""What the doctor asks of the machine: versions, interfaces, scheduling, GPU, disk, bundle."""

import re
import resource
import shutil
import socket
from collections.abc import Mapping
from pathlib import Path

from g1_policy_node.bundle import load_bundle, resolve_bundle
from g1_policy_node.devices import cuda_device_count
from g1_policy_node.tools.doctor import Finding, Level
from g1_policy_node.tools.manifest import gpu_and_driver, usable_cores, version
from g1_policy_node.types import UserError

NEEDED = ('numpy', 'pyyaml', 'rich', 'safetensors')
OPTIONAL = ('cyclonedds', 'mujoco', 'torch')
DISK_BYTES = 2 * 10**9
PRIORITY = 80
_PIN = re.compile(r'^([A-Za-z0-9._-]+)==(\S+)$', re.MULTILINE)


def versions(lock: str, installed: Mapping[str, str | None]) -> list[Finding]:
    """Compare what is installed with the lock file's text; None: not installed."""
    pins = dict(_PIN.findall(lock))
    findings = []
    if not pins:
        remedy = 'run it from the source tree, which has constraints/venv.txt'
        findings.append(Finding('versions', Level.WARN, 'no lock to compare with', remedy))
    for name, got in installed.items():
        pinned = pins.get(name)
        if got is None:
            level = Level.FAIL if name in NEEDED else Level.WARN
            remedy = f'pip install {name}=={pinned}' if pinned else f'pip install {name}'
            findings.append(Finding('versions', level, f'{name} is not installed', remedy))
        elif pinned and got.split('+')[0] != pinned:
            found = f'{name} {got}, tested with {pinned}'
            findings.append(
                Finding('versions', Level.WARN, found, f'pip install {name}=={pinned}')
            )
    if not findings:
        shown = ', '.join(f'{name} {got}' for name, got in installed.items())
        findings.append(Finding('versions', Level.PASS, shown))
    return findings


def check_versions() -> list[Finding]:
    """Compare with constraints/venv.txt, where this is a source tree."""
    lock = Path(__file__).resolve().parents[2] / 'constraints/venv.txt'
    text = lock.read_text() if lock.exists() else ''
    return versions(text, {name: version(name) for name in (*NEEDED, *OPTIONAL)})


def ros(environment: Mapping[str, str]) -> list[Finding]:
    """Say which middleware and domain the ROS side uses."""
    rmw = environment.get('RMW_IMPLEMENTATION', 'the default')
    domain = environment.get('ROS_DOMAIN_ID', '0')
    where = environment.get('ROS_AUTOMATIC_DISCOVERY_RANGE', 'SUBNET')
    found = f'{rmw}, domain {domain}, discovery range {where}'
    if where in ('LOCALHOST', 'OFF'):
        return [Finding('ros', Level.PASS, found)]
    remedy = 'export ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST unless another host takes part'
    return [Finding('ros', Level.WARN, found, remedy)]


def interface(name: str, sys_net: Path = Path('/sys/class/net')) -> list[Finding]:
    """Check the network interface that leads to the robot."""
    there = sorted(path.name for path in sys_net.iterdir())
    if not name:
        found = f'no robot asked for; interfaces: {", ".join(there)}'
        return [Finding('interface', Level.WARN, found, 'for the robot: --interface NAME')]
    if name not in there:
        remedy = f'there are: {", ".join(there)}'
        return [Finding('interface', Level.FAIL, f'no interface {name}', remedy)]
    state = (sys_net / name / 'operstate').read_text().strip()
    if state not in ('up', 'unknown'):
        remedy = 'plug in the cable; the robot is 192.168.123.161, so give this host 192.168.123.x'
        return [Finding('interface', Level.FAIL, f'{name} is {state}', remedy)]
    if (sys_net / name / 'wireless').exists():
        remedy = 'use a cable: a radio link stalls for longer than a robot survives'
        return [Finding('interface', Level.FAIL, f'{name} is wireless', remedy)]
    return [Finding('interface', Level.PASS, f'{name} is {state}, host {socket.gethostname()}')]


def governor(cpus: Path = Path('/sys/devices/system/cpu')) -> list[Finding]:
    """Check that the processor keeps its clock up."""
    found = {p.read_text().strip() for p in cpus.glob('cpu*/cpufreq/scaling_governor')}
    if not found:
        found_none = 'not shown (a virtual machine, or a fixed clock): could not be checked'
        return [Finding('governor', Level.WARN, found_none)]
    if found == {'performance'}:
        return [Finding('governor', Level.PASS, 'performance')]
    remedy = 'sudo cpupower frequency-set -g performance'
    return [Finding('governor', Level.WARN, ', '.join(sorted(found)), remedy)]


def real_time(limit: int) -> list[Finding]:
    """Check the real-time priority allowed to this user, `ulimit -r`."""
    if limit == resource.RLIM_INFINITY or limit >= PRIORITY:
        return [Finding('real_time', Level.PASS, f'priority {PRIORITY} is allowed')]
    remedy = f"add '@realtime - rtprio {PRIORITY}' to /etc/security/limits.conf, and log in anew"
    return [Finding('real_time', Level.WARN, f'priority up to {limit} is allowed', remedy)]


def check_real_time() -> list[Finding]:
    """Check this process's own limit; root has none."""
    if Path('/proc/self/status').read_text().split('\nUid:\t')[1].startswith('0\t'):
        return [Finding('real_time', Level.PASS, 'root')]
    return real_time(resource.getrlimit(resource.RLIMIT_RTPRIO)[0])


def clock_source(
    path: Path = Path('/sys/devices/system/clocksource/clocksource0/current_clocksource'),
) -> list[Finding]:
    """Check that reading the time is cheap."""
    source = path.read_text().strip() if path.exists() else 'unknown'
    cheap = source in ('tsc', 'arch_sys_counter', 'kvm-clock', 'hyperv_clocksource_tsc_page')
    remedy = '' if cheap else 'reading the time may cost microseconds: see the kernel log for tsc'
    return [Finding('clock', Level.PASS if cheap else Level.WARN, source, remedy)]


def cores(usable: int | None, load: float) -> list[Finding]:
    """Check that the machine is free for the robot."""
    if usable is None:
        return [Finding('load', Level.WARN, 'cores cannot be counted here')]
    found = f'load {load:.1f} on {usable} cores'
    if load > usable:
        return [Finding('load', Level.FAIL, found, 'end what else runs here')]
    return [Finding('load', Level.WARN if load > usable / 2 else Level.PASS, found)]


def check_cores() -> list[Finding]:
    """Check this machine's load over the last minute."""
    return cores(usable_cores(), float(Path('/proc/loadavg').read_text().split()[0]))


def check_gpu() -> list[Finding]:
    """Say which GPUs there are; none is needed."""
    names, driver = gpu_and_driver()
    count = cuda_device_count()
    if not count and names:
        remedy = 'reinstall the NVIDIA driver, or use device cpu'
        return [Finding('gpu', Level.WARN, f'{names[0]}, but CUDA sees none', remedy)]
    found = f'{", ".join(names or [])}, driver {driver}' if names else 'none: device cpu'
    return [Finding('gpu', Level.PASS, found)]


def disk(free: int) -> list[Finding]:
    """Check the room for a run's evidence, in bytes."""
    found = f'{free / 1e9:.1f} GB free here'
    if free < DISK_BYTES:
        return [Finding('disk', Level.FAIL, found, 'make room: a recorded hour is over 1 GB')]
    return [Finding('disk', Level.PASS, found)]


def check_disk() -> list[Finding]:
    """Check the disk that runs/ is on."""
    return disk(shutil.disk_usage(Path.cwd()).free)


def check_bundle(policy: str) -> list[Finding]:
    """Check the policy as the router will."""
    try:
        bundle = load_bundle(resolve_bundle(policy))
    except UserError as error:
        remedy = f'g1-policy bundle check {policy}'
        return [Finding('bundle', Level.FAIL, str(error), remedy)]
    return [Finding('bundle', Level.PASS, f'{policy}: contract {bundle.contract.sha256[:16]}')]
