"""Every readable bag is read in one order; every other one is refused in one line."""

import pytest
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
from samples import DEFAULT
from tapes import STORE, T0, joint_state, messages, write_tape

from g1_policy_node.tools.tape.bag import decode, read_bag
from g1_policy_node.tools.tape.tape import open_tape
from g1_policy_node.types import UserError


def test_both_storages_give_the_same_messages(tmp_path) -> None:
    mcap = read_bag(write_tape(tmp_path / 'a'))
    sqlite = read_bag(write_tape(tmp_path / 'b', storage=StoragePlugin.SQLITE3))
    assert (mcap.storage, sqlite.storage) == ('mcap', 'sqlite3')
    assert mcap.topics == sqlite.topics
    assert not mcap.notes and not sqlite.notes


@pytest.mark.parametrize(
    ('storage', 'mode'),
    [
        (StoragePlugin.MCAP, CompressionMode.FILE),
        (StoragePlugin.MCAP, CompressionMode.MESSAGE),
        (StoragePlugin.MCAP, CompressionMode.STORAGE),
        (StoragePlugin.SQLITE3, CompressionMode.FILE),
        (StoragePlugin.SQLITE3, CompressionMode.MESSAGE),
    ],
)
def test_zstd_as_ros2_bag_record_compresses_gives_the_same_messages(
    tmp_path, monkeypatch, storage, mode
) -> None:
    plain = read_bag(write_tape(tmp_path / 'a', messages(ticks=10), storage))
    opened = Writer.open

    def compressed(writer) -> None:
        writer.set_compression(mode, CompressionFormat.ZSTD)
        opened(writer)

    monkeypatch.setattr(Writer, 'open', compressed)
    assert read_bag(write_tape(tmp_path / 'b', messages(ticks=10), storage)).topics == plain.topics


def test_messages_come_by_receive_time_and_equal_ones_in_file_order(tmp_path) -> None:
    times = [T0 + 3, T0 + 1, T0 + 1, T0]
    content = [(t, '/joint_states', joint_state(i)) for i, t in enumerate(times)]
    bag = read_bag(write_tape(tmp_path / 'a', content))
    stamps = [m.header.stamp.nanosec for _, m in bag.decoded('/joint_states')]
    assert stamps == [3, 1, 2, 0]


@pytest.mark.parametrize('storage', [StoragePlugin.MCAP, StoragePlugin.SQLITE3])
def test_a_bag_without_metadata_is_read_and_says_so(tmp_path, storage) -> None:
    path = write_tape(tmp_path / 'a', storage=storage)
    whole = read_bag(path)
    (path / 'metadata.yaml').unlink()
    bag = read_bag(path)
    assert bag.topics == whole.topics
    assert bag.notes[0] == 'no metadata.yaml: the recorder did not finish'


def test_a_truncated_mcap_keeps_its_whole_chunks(tmp_path) -> None:
    path = write_tape(tmp_path / 'a', messages(ticks=400))
    whole = read_bag(path)
    file = path / 'a.mcap'
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    bag = read_bag(path)
    assert any('truncated' in note for note in bag.notes)
    held, full = (x.topics['/joint_states'].messages for x in (bag, whole))
    assert 0 < len(held) < len(full)
    assert held == full[: len(held)]


@pytest.mark.parametrize('room', [0, 4, 8])
def test_room_behind_the_last_field_is_read_over(room: int) -> None:
    kind = 'sensor_msgs/msg/JointState'
    data = bytes(STORE.serialize_cdr(joint_state(T0), kind))
    message = decode(data + b'\x07' * room, kind, 'here')
    assert message.position.tolist() == DEFAULT.tolist()
    with pytest.raises(UserError, match='here: '):
        decode(data[:-16], kind, 'here')


def change_metadata(path, old: str, new: str) -> None:
    file = path / 'metadata.yaml'
    file.write_text(file.read_text().replace(old, new))


@pytest.mark.parametrize(
    ('spoil', 'says'),
    [
        (lambda p: (p / 'a.mcap').unlink(), 'missing'),
        (lambda p: (p / 'a.mcap').write_bytes(b'nonsense'), 'not an mcap file'),
        (lambda p: (p / 'metadata.yaml').write_text('{'), 'not plain YAML'),
        (lambda p: (p / 'metadata.yaml').write_text('a: &a [x]\nb: *a'), 'aliases'),
        (lambda p: (p / 'metadata.yaml').write_text('a: !!python/object:x.y {}'), 'the tag'),
        (lambda p: (p / 'metadata.yaml').write_text('a: b\n' * 10**6), 'bytes allowed'),
        (lambda p: (p / 'metadata.yaml').write_text('[1]'), 'is not readable'),
        (lambda p: change_metadata(p, 'identifier: mcap', 'identifier: tar'), "storage 'tar'"),
        (lambda p: [x.unlink() for x in p.iterdir()], 'no bag: neither metadata.yaml nor'),
    ],
)
def test_what_cannot_be_read_is_one_line(tmp_path, spoil, says: str) -> None:
    path = write_tape(tmp_path / 'a')
    spoil(path)
    with pytest.raises(UserError, match=says) as error:
        read_bag(path)
    assert '\n' not in str(error.value)


def test_zero_messages_and_no_path_are_refused(tmp_path) -> None:
    with pytest.raises(UserError, match='zero messages'):
        read_bag(write_tape(tmp_path / 'a', []))
    with pytest.raises(UserError, match='no such bag'):
        read_bag(tmp_path / 'b')


def test_a_missing_topic_is_named_with_those_there_are(tmp_path) -> None:
    tape = open_tape(write_tape(tmp_path / 'a', [(T0, '/joint_states', joint_state(T0))]))
    with pytest.raises(UserError, match=r'no imu/data in it \(it has /joint_states\)'):
        tape.topic('imu/data')


def test_two_robots_on_a_tape_have_to_be_told_apart(tmp_path) -> None:
    content = [(T0, f'/{name}/joint_states', joint_state(T0)) for name in ('left', 'right')]
    path = write_tape(tmp_path / 'a', content)
    with pytest.raises(UserError, match='several joint_states'):
        open_tape(path)
    assert open_tape(path, 'left').topic('joint_states') == '/left/joint_states'
