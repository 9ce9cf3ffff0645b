-- shortened: the end of extend, where a lease has become shorter: who sleeps until it ends has to wake earlier.
announce(soonest)
return reply
