package memstore

// The queue that agendas, due tasks and leases are kept in: a heap whose items know their places.

import "container/heap"

// indexed is an item of a queue that knows where it is, so that it can be moved or taken out.
// A map from items to places would do the same at a higher cost; every task,
// agent and lease has room for a number.
type indexed interface{ position() *int }

// queue is a priority queue. An item is in at most one queue; its position is -1 when it is in none.
// less has to be a total order, so that equal items come out as Redis returns them.
type queue[T indexed] struct {
	items []T
	less  func(a, b T) bool `image:"-"`
}

// newQueue makes an empty queue.
func newQueue[T indexed](less func(a, b T) bool) *queue[T] { return &queue[T]{less: less} }

// Len, Less, Swap, Push and Pop are for container/heap.

func (q *queue[T]) Len() int           { return len(q.items) }
func (q *queue[T]) Less(i, j int) bool { return q.less(q.items[i], q.items[j]) }

func (q *queue[T]) Swap(i, j int) {
	q.items[i], q.items[j] = q.items[j], q.items[i]
	*q.items[i].position() = i
	*q.items[j].position() = j
}

// Push must not be called directly: it does not restore the order.
func (q *queue[T]) Push(x any) {
	item := x.(T) //nolint:forcetypeassert,errcheck // only add calls it
	*item.position() = len(q.items)
	q.items = append(q.items, item)
}

// Pop clears the place behind the end, so that the item can be freed.
func (q *queue[T]) Pop() any {
	last := len(q.items) - 1
	item := q.items[last]
	var none T
	q.items[last] = none
	q.items = q.items[:last]
	*item.position() = -1
	return item
}

// add puts an item in its place.
func (q *queue[T]) add(item T) { heap.Push(q, item) }

// fix moves an item whose order has changed.
func (q *queue[T]) fix(item T) { heap.Fix(q, *item.position()) }

// remove takes an item out; one that is in no queue is left alone.
func (q *queue[T]) remove(item T) {
	if i := *item.position(); i >= 0 {
		heap.Remove(q, i)
	}
}

// head is the first item; false if the queue is empty.
func (q *queue[T]) head() (T, bool) {
	if len(q.items) == 0 {
		var none T
		return none, false
	}
	return q.items[0], true
}

// pop takes the first item out. The queue must not be empty.
func (q *queue[T]) pop() T { return heap.Pop(q).(T) } //nolint:forcetypeassert,errcheck // only add pushes

// first are the first items, at most so many, as long as they fit. They stay in the queue.
// Redis reads a range of a sorted set; a heap has to take items out to find
// the next one, and puts them back.
func (q *queue[T]) first(most int, fits func(T) bool) []T {
	var out []T
	for len(out) < most {
		item, ok := q.head()
		if !ok || !fits(item) {
			break
		}
		out = append(out, q.pop())
	}
	for _, item := range out {
		q.add(item)
	}
	return out
}
