"""Packaging for colcon (ament_python) and pip. Versions are pinned in constraints/."""

from pathlib import Path

from setuptools import find_packages, setup

NAME = 'g1_policy_node'


def shared_files() -> list[tuple[str, list[str]]]:
    """Every file of the folders that ROS looks for in share/, as (destination, files)."""
    folders: dict[str, list[str]] = {}
    for top in ('launch', 'config', 'policies'):
        for path in sorted(Path(top).rglob('*')):
            if path.is_file() and path.suffix != '.pyc':
                folders.setdefault(f'share/{NAME}/{path.parent}', []).append(str(path))
    return list(folders.items())


setup(
    name=NAME,
    version='0.1.0',
    description='Runs a learned walking policy on a Unitree G1 over ROS 2 and times every stage',
    license='Apache-2.0',
    maintainer='g1_policy_node maintainers',
    maintainer_email='maintainers@example.org',
    packages=find_packages(include=[NAME, f'{NAME}.*']),
    package_data={NAME: ['tools/report_page/*']},
    python_requires='>=3.10',
    install_requires=['setuptools', 'jinja2', 'numpy', 'pyyaml', 'rich', 'safetensors'],
    extras_require={
        # ROS for machines that have none; elsewhere it comes from the distribution.
        'wheels': [
            'ros-jazzy-diagnostic-msgs',
            'ros-jazzy-geometry-msgs',
            'ros-jazzy-nav-msgs',
            'ros-jazzy-rclpy',
            'ros-jazzy-rmw-fastrtps-cpp',
            'ros-jazzy-rosgraph-msgs',
            'ros-jazzy-sensor-msgs',
            'ros-jazzy-std-msgs',
            'ros-jazzy-std-srvs',
        ],
        # The simulator also needs mjlab's model, which comes without its dependencies:
        # pip install --no-deps -r constraints/data.txt
        'sim': ['mujoco', 'pillow'],  # Pillow encodes the report's pictures.
        # Unitree's LowState and LowCmd.
        'robot': ['cyclonedds'],
        'torch': ['torch'],
        'tape': ['rosbags'],
        'formats': ['onnx'],  # To read and write ONNX in `g1-policy bundle import` and `export`.
        'bench': ['matplotlib', 'onnx', 'onnxruntime', 'torch'],  # `make bench`
        'view': ['viser'],
        # In an environment of its own, .venv-train: Isaac Lab pins much.
        'train': ['isaaclab', 'mujoco-usd-converter'],
        'lint': ['mypy', 'ruff'],
        'test': [
            'colcon-bash',
            'colcon-ros',
            'hypothesis',
            'onnxruntime',
            'pytest',
            'pytest-timeout',
            'selenium',
        ],
    },
    data_files=[
        ('share/ament_index/resource_index/packages', [f'resource/{NAME}']),
        (f'share/{NAME}', ['package.xml']),
        *shared_files(),
    ],
    zip_safe=False,
    entry_points={
        'console_scripts': [
            f'policy_node = {NAME}.node:main',
            f'mujoco_sim = {NAME}.sim.mujoco_sim:main',
            f'isaac_sim = {NAME}.sim.isaac_sim:main',
            f'unitree_bridge = {NAME}.bridge.unitree_bridge:main',
            f'cmd_source = {NAME}.cmd_source:main',
            f'joy_teleop = {NAME}.joy_teleop:main',
            f'g1_view = {NAME}.view.g1_view:main',
            f'floor = {NAME}.tools.floor:main',
            f'tape_recorder = {NAME}.tools.tape.recorder:main',
            f'g1-policy = {NAME}.cli:main',
        ],
    },
)
