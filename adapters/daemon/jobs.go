package daemon

// The jobs: goroutines that are kept for the next pull, as a new one has to grow its stack first.

// mostIdle is how many goroutines are kept.
const mostIdle = 2

// jobs are goroutines that wait for something to do.
type jobs struct {
	todo  chan func()
	kept  chan struct{} // has a value for each goroutine that may be kept
	ended chan struct{}
}

func newJobs() jobs {
	return jobs{todo: make(chan func()), kept: make(chan struct{}, mostIdle), ended: make(chan struct{})}
}

// do calls f in a goroutine that waits, or in a new one.
func (j *jobs) do(f func()) {
	select {
	case j.todo <- f:
	default:
		go j.work(f)
	}
}

// work calls f, and then the jobs that come, unless enough others wait already.
func (j *jobs) work(f func()) {
	for {
		f()
		select {
		case j.kept <- struct{}{}:
		default:
			return
		}
		select {
		case f = <-j.todo:
			<-j.kept
		case <-j.ended:
			return
		}
	}
}

// end lets those go that wait.
func (j *jobs) end() { close(j.ended) }
