import numpy as np

from g1_policy_node.bridge.link import (
    Link,
    Orders,
    Report,
    pack_command,
    pack_note,
    unpack_command,
)
from g1_policy_node.driver import JointCommand


def test_a_command_arrives_as_it_was_sent_however_wrong_it_is() -> None:
    sent = JointCommand(('b', 'a', 'ü'), np.array([1.0, np.nan]), 'other contract', 3, 4, 5, 6)
    got = unpack_command(pack_command(sent))
    assert got._replace(position=None) == sent._replace(position=None)
    np.testing.assert_array_equal(got.position, sent.position)


def test_a_command_without_names_arrives_without() -> None:
    sent = JointCommand((), np.array([]), '', 0, 0, 0)
    assert unpack_command(pack_command(sent)).names == ()


def test_orders_and_reports_arrive_as_they_were_sent() -> None:
    assert Orders.unpack(Orders(3, 4).pack()) == Orders(3, 4)
    note = pack_note('why', 'answer')
    report = Report(1, 2, 3, 4, 5, True, True, 6, 7, 8, 9, 10, bytes(2092), note)
    assert Report.unpack(report.pack()) == report
    assert Report.unpack(report.pack()).notes() == {'cause': 'why', 'answer': 'answer'}


def test_a_report_before_the_first_state_has_none() -> None:
    report = Report(1, 2, 3, 0, 5, False, False, 6, 7, 8, 9, 10, b'', b'{}')
    assert Report.unpack(report.pack()).state == b''


def test_both_ends_of_a_link_are_the_same_memory() -> None:
    node = Link()
    writer = Link(node.descriptors)
    node.command.write(b'c')
    node.orders.write(b'o')
    writer.report.write(b'r')
    assert (writer.command.take(), writer.orders.take(), node.report.take()) == (b'c', b'o', b'r')
